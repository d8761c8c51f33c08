"""A result in a notebook, and the `repr` of events, messages and results."""

from html.parser import HTMLParser

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    AgentEvent,
    MemoryStore,
    Message,
    ModelError,
    Runner,
    RunResult,
    RunStatus,
    ScriptedModel,
    ToolCalls,
)

EVIL = "<script>alert(1)</script><img src=x onerror='alert(1)'>"


@tool(needs_approval=True)
def refund(order: str) -> str:
    """Give the money back."""
    return order


def result_of(*lines, **options):
    return (
        Runner(
            ChatModelAgent(name="Ada", model=ScriptedModel(lines), **options), store=MemoryStore()
        )
        .query("hi")
        .result()
    )


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)


def test_a_result_in_a_notebook_is_what_was_said_with_the_rest_folded():
    shown = result_of("hello\nthere")._repr_html_()
    assert "completed" in shown
    assert "hello\nthere" in shown
    assert Tags(shown).found.count("details") == 2, (
        "all events, and the one that has more than a line"
    )


def test_what_was_said_is_never_html():
    shown = result_of(ToolCalls(refund={"order": EVIL}), tools=[refund])._repr_html_()
    assert {"script", "img"} & set(Tags(shown).found) == set()
    assert "waits: " in shown
    failed = RunResult(
        RunStatus.FAILED,
        ModelError(EVIL),
        Message.assistant(EVIL),
        events=(AgentEvent(EVIL, message=Message.assistant(EVIL)),),
    )
    assert {"script", "img"} & set(Tags(failed._repr_html_()).found) == set()


def test_a_long_result_is_cut_in_a_notebook():
    events = tuple(
        AgentEvent("A", message=Message.assistant("x" * 50_000), seq=number)
        for number in range(2000)
    )
    shown = RunResult(RunStatus.COMPLETED, events=events)._repr_html_()
    assert "and 1,500 more" in shown
    assert "50,000 characters" in shown


def test_a_repr_shows_what_is_there_and_not_what_is_not():
    assert repr(Message.user("hi")) == "Message(role='user', content='hi')"
    event = AgentEvent("Ada", ("Ada",), Message.assistant("x"), seq=3, run_id="r", timestamp=1.0)
    assert repr(event) == (
        "AgentEvent(agent_name='Ada', run_path=('Ada',), message=Message(role='assistant', "
        "content='x'), seq=3)"
    )
    assert (
        repr(AgentEvent("Ada", error=ValueError("no")))
        == "AgentEvent(agent_name='Ada', error=ValueError('no'))"
    )


def test_the_repr_of_a_result_is_a_line():
    assert repr(result_of("hello")) == "<RunResult completed by Ada: 'hello'; 1 event>"
    assert repr(result_of(ModelError("down"))).startswith(
        "<RunResult failed by Ada: ModelError: down"
    )
    assert "waits: ApprovalRequest(" in repr(
        result_of(ToolCalls(refund={"order": "7"}), tools=[refund])
    )
    assert len(repr(result_of("x" * 10_000))) < 300
