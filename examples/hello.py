"""One agent, one question, one answer.

python examples/hello.py
"""

from models import model

from offbook import ChatModelAgent, Runner

agent = ChatModelAgent(
    name="Hello",
    instruction="You are a friendly assistant. Answer in one sentence.",
    model=model("Hello! I am Hello, an assistant who answers in one sentence."),
)


def main() -> None:
    result = Runner(agent).query("Hello, please introduce yourself.").result()
    result.raise_for_error()
    if result.final_message is not None:
        print(result.final_message.text)


if __name__ == "__main__":
    main()
