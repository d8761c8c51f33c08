"""What stands in braces in an instruction."""

import pytest

from offbook.actors import ChatModelAgent, Sequential
from offbook.runtime import Message, Runner, ScriptedModel, UsageError


def filled(instruction, values):
    agent = ChatModelAgent(name="A", instruction=instruction, model=ScriptedModel(["ok"]))
    Runner(agent).query("q", session_values=values).result().raise_for_error()
    return agent.model.requests[0].messages[0].text


@pytest.mark.parametrize(
    ("instruction", "values", "expected"),
    [
        ("For {user}.", {"user": "Ann"}, "For Ann."),
        ("{a}{b}{a}", {"a": 1, "b": None}, "1None1"),
        ("{a}", {"a": "{b}", "b": "x"}, "{b}"),
        ("For {nobody}.", {"user": "Ann"}, "For {nobody}."),
        (
            'Answer as {"x": 1} or {} or {0} or { user }.',
            {"user": "Ann"},
            'Answer as {"x": 1} or {} or {0} or { user }.',
        ),
        ("{user", {"user": "Ann"}, "{user"),
        ("user}", {"user": "Ann"}, "user}"),
        (
            "{user.name} {user-name} {user_1}",
            {"user.name": "a", "user-name": "b", "user_1": "c"},
            "a b c",
        ),
        ("{user!r:>10} {user[0]}", {"user": "Ann"}, "{user!r:>10} {user[0]}"),
        ("%s {user} \\1 \\g<0>", {"user": "\\1 %s"}, "%s \\1 %s \\1 \\g<0>"),
        ("{user}", {"user": ""}, ""),
    ],
)
def test_braces_are_filled_where_there_is_a_value_of_that_name(instruction, values, expected):
    assert filled(f"I: {instruction}", values) == f"I: {expected}"


@pytest.mark.parametrize("key", ["名前", "élève", "user name", "1", "user:id"])
def test_a_value_may_have_any_name(key):
    assert filled(f"For {{{key}}}.", {key: "Ann"}) == "For Ann."


def test_values_that_agents_put_in_on_the_way_are_filled_in(actor):
    async def put(context):
        context.session["found"] = "gold"

    agent = ChatModelAgent(name="A", instruction="You have {found}.", model=ScriptedModel(["ok"]))
    Runner(Sequential(name="S", sub_agents=[actor("X", put), agent])).query("q").result()
    assert agent.model.requests[0].messages[0] == Message.system("You have gold.")


def test_what_make_model_input_is_given_has_been_filled_in():
    seen = []

    def make(text, given, _context):
        seen.append(text)
        return [Message.system(text), *given.messages]

    agent = ChatModelAgent(
        name="A", instruction="For {user}.", make_model_input=make, model=ScriptedModel(["ok"])
    )
    Runner(agent).query("q", session_values={"user": "Ann"}).result()
    assert seen == ["For Ann."]
    assert agent.model.requests[0].messages == (Message.system("For Ann."), Message.user("q"))


def test_user_messages_are_not_filled_in():
    agent = ChatModelAgent(name="A", instruction="For {user}.", model=ScriptedModel(["ok"]))
    Runner(agent).query("What is {user}?", session_values={"user": "Ann"}).result()
    assert agent.model.requests[0].messages[1] == Message.user("What is {user}?")


@pytest.mark.parametrize(
    ("written", "values"),
    [("nmae", ["name"]), ("usr", ["user", "found"]), ("sesion_id", ["session_id"])],
)
def test_a_slip_of_the_pen_is_an_error_that_says_what_is_meant(written, values):
    with pytest.raises(
        UsageError, match=rf"'A'.*\{{{written}\}}.*\{{{values[0]}\}}.*strict_instruction=False"
    ):
        filled(f"For {{{written}}}.", dict.fromkeys(values, "Ann"))


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("user_2", ["user_1"]),
        ("language", ["user"]),
        ("x", ["y"]),
        ("user.nam", ["user.name"]),
        ("user_age", ["user_name"]),
    ],
)
def test_what_is_like_no_value_stays_as_it_is(written, values):
    assert filled(f"For {{{written}}}.", dict.fromkeys(values, "Ann")) == f"For {{{written}}}."


def test_braces_may_be_meant_as_they_are():
    agent = ChatModelAgent(
        name="A", instruction="For {nmae}.", strict_instruction=False, model=ScriptedModel(["ok"])
    )
    Runner(agent).query("q", session_values={"name": "Ann"}).result().raise_for_error()
    assert agent.model.requests[0].messages[0].text == "For {nmae}."
