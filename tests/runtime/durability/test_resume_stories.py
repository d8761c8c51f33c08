"""Two programs that ask the user in the middle: a librarian who wants to know more, and a project
manager whose researcher does.
"""

import pytest

from offbook.actors import ChatModelAgent, Sequential, Supervisor, ToolContext, tool
from offbook.runtime import (
    MemoryStore,
    Options,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    ToolOptions,
)
from tests.doubles.waiting import is_whole, to


class NewInput(ToolOptions):
    """What the user has said, for the tool that has asked."""

    def __init__(self, text):
        super().__init__(new_input=text, tools=("ask_for_clarification",))


@tool
def ask_for_clarification(question: str, context: ToolContext) -> str:
    """Call this when the user's request is ambiguous, or lacks what is needed to go on."""
    if not context.is_resume:  # what the user said to an earlier question is no answer to this one
        context.interrupt(question)
    return context.options["new_input"]


@tool
def search_book(genre: str, max_pages: int = 1000) -> dict[str, list[str]]:
    """Search books by the user's preferences."""
    return {"books": [f"a {genre} book of {max_pages} pages"]}


def librarian(*script):
    return ChatModelAgent(
        name="BookRecommender",
        description="An agent that can recommend books.",
        instruction="You are an expert book recommender. Search for books with the tool 'search_book'.",
        tools=[search_book, ask_for_clarification],
        model=ScriptedModel(script),
    )


BOOK_SCRIPT = (
    ToolCalls(ask_for_clarification={"question": "Which genre?"}),
    ToolCalls(search_book={"genre": "fantasy", "max_pages": 300}),
    "Read a fantasy book.",
)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_librarian_asks_for_the_genre_and_recommends_a_book(lines, streaming):
    agent = librarian(*BOOK_SCRIPT)
    runner = Runner(agent, store=MemoryStore(), streaming=streaming)
    shown = [
        event
        for event in runner.query("recommend a book to me", checkpoint_id="1")
        if event.delta is None
    ]
    assert lines(shown) == [
        'BookRecommender [BookRecommender] assistant "" tc(ask_for_clarification '
        '{"question":"Which genre?"})',
        "BookRecommender [BookRecommender] {Interrupted 1}",
    ]
    assert shown[-1].action.contexts[0].info == "Which genre?"
    run = runner.resume("1", tool_options=NewInput("fantasy, short"))
    shown = [event for event in run if event.delta is None]
    assert lines(shown) == [
        'BookRecommender [BookRecommender] tool(ask_for_clarification) "fantasy, short"',
        'BookRecommender [BookRecommender] assistant "" tc(search_book '
        '{"genre":"fantasy","max_pages":300})',
        'BookRecommender [BookRecommender] tool(search_book) "{"books":["a fantasy book of '
        '300 pages"]}"',
        'BookRecommender [BookRecommender] assistant "Read a fantasy book."',
    ]
    assert run.result(20).status is RunStatus.COMPLETED
    agent.model.assert_done()
    assert is_whole(agent.model.requests[-1].messages)


def test_a_librarian_may_be_told_by_data_as_well():
    @tool
    async def ask_for_clarification(question: str, context: ToolContext) -> str:
        return context.interrupt(question)

    agent = ChatModelAgent(
        name="BookRecommender",
        tools=[search_book, ask_for_clarification],
        model=ScriptedModel(BOOK_SCRIPT),
    )
    runner = Runner(agent, store=MemoryStore())
    assert (
        runner.query("recommend a book to me", checkpoint_id="1").result(20).interrupts[0].info
        == "Which genre?"
    )
    assert runner.resume("1", data="fantasy").result(20).final_output == "Read a fantasy book."
    assert [message.text for message in agent.model.requests[1].messages][-1] == "fantasy"


# --- the project manager ---


def web_search(query: str) -> str:
    """Search the web."""
    return f"results for {query}"


def knowledge_base(query: str) -> str:
    """Look up what is known."""
    return f"known of {query}"


def expert(name, *script, tools=()):
    return ChatModelAgent(
        name=name,
        description=f"the {name}",
        instruction=f"You are the {name}.",
        tools=tools,
        model=ScriptedModel(script),
    )


def team():
    """As in the original: the manager leads, the researcher asks twice, the coder looks things up,
    three review one after the other.
    """
    research = expert(
        "ResearchAgent",
        ToolCalls(ask_for_clarification={"question": "Web or terminal?"}),
        ToolCalls(web_search={"query": "chat in the terminal"}),
        ToolCalls(ask_for_clarification={"question": "Which model?"}),
        "Use a loop.",
        tools=[web_search, ask_for_clarification],
    )
    code = expert(
        "CodeAgent",
        ToolCalls(knowledge_base={"query": "loops"}),
        "while True: ...",
        tools=[knowledge_base],
    )
    review = Sequential(
        name="ReviewAgent",
        description="reviews",
        sub_agents=[
            expert("question_analysis_agent", "It must chat."),
            expert("generate_review_agent", "It does."),
            expert("review_validation_agent", "Indeed it does."),
        ],
    )
    manager = expert(
        "project_manager_agent",
        to("ResearchAgent"),
        to("CodeAgent"),
        to("ReviewAgent"),
        "Here is your project.",
    )
    agents = [manager, research, code, *review.sub_agents]
    return Supervisor(supervisor=manager, sub_agents=[research, code, review]), agents


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_project_manager_is_interrupted_and_resumed_until_it_is_done(durability):
    agent, agents = team()
    runner = Runner(agent, store=MemoryStore(), streaming=True, durability=durability)
    answers = iter(["in the terminal", "a small one"])
    said, questions, interrupted, finished = [], [], False, False
    while not finished:
        if interrupted:
            run = runner.resume("1", tool_options=NewInput(next(answers)))
        else:
            run = runner.query(
                "please generate a simple ai chat project with python.",
                checkpoint_id="1",
                options=Options(project="chat"),
            )
        interrupted = False
        for event in run:
            assert event.error is None
            if event.action is not None and hasattr(event.action, "contexts"):
                interrupted = True
                questions += [context.info for context in event.action.contexts]
                assert (event.agent_name, event.run_path) == (
                    "ResearchAgent",
                    ("project_manager_agent", "ResearchAgent"),
                )
            elif event.message is not None and event.message.text:
                said.append(event.message.text)
        finished = not interrupted
    assert questions == ["Web or terminal?", "Which model?"]
    assert [text for text in said if "transferred" not in text] == [
        "in the terminal",
        "results for chat in the terminal",
        "a small one",
        "Use a loop.",
        "known of loops",
        "while True: ...",
        "It must chat.",
        "It does.",
        "Indeed it does.",
        "Here is your project.",
    ]
    for one in agents:
        one.model.assert_done()
        assert all(is_whole(request.messages) for request in one.model.requests)
    assert run.result(20).last_agent == "project_manager_agent"
