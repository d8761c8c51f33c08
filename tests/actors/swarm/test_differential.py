"""Swarm's loop, written down once more from its rules, against the one that runs on actors:
whatever the models say and the functions do, both come to the same.
"""

import asyncio
import copy
import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.actors.swarm import Agent, Result, Swarm
from tests.doubles.swarm_clients import USER, AsyncScriptedClient, ScriptedClient, call, reply


class Trouble(Exception):
    """What a function raises."""


# --- the rules ---


def rules(client, agent, messages, variables, *, stream, model_override, max_turns, execute_tools):
    """Swarm's loop.

    Returns the messages, the agent and the context variables, and in front of them the pieces that
    it streams.
    """
    first, history, variables, pieces = agent, copy.deepcopy(messages), copy.deepcopy(variables), []
    while len(history) - len(messages) < max_turns:
        names = [function.__name__ for function in agent.functions]
        asked = [{"role": "system", "content": agent.instructions}, *history]
        request = {
            "model": model_override or agent.model,
            "messages": asked,
            "tools": names,
            "tool_choice": agent.tool_choice,
            "stream": stream,
        }
        said = client.create(
            **request, **({"parallel_tool_calls": agent.parallel_tool_calls} if names else {})
        )
        message = (
            streamed(said, agent, first, pieces)
            if stream
            else {**said.choices[0].message.model_dump(), "sender": agent.name}
        )
        history.append(message)
        if not message["tool_calls"] or not execute_tools:
            break
        changed, following = {}, agent
        for one in message["tool_calls"]:
            name = one["function"]["name"]
            tool = {"role": "tool", "tool_call_id": one["id"], "tool_name": name}
            if name not in names:
                history.append({**tool, "content": f"Error: Tool {name} not found."})
                continue
            arguments = json.loads(one["function"]["arguments"])
            function = agent.functions[names.index(name)]
            if "context_variables" in function.__code__.co_varnames:
                arguments["context_variables"] = variables
            result = function(**arguments)
            if isinstance(result, Agent):
                result = Result(value=json.dumps({"assistant": result.name}), agent=result)
            if not isinstance(result, Result):
                result = Result(value=str(result))
            history.append({**tool, "content": result.value})
            changed.update(result.context_variables)
            following = result.agent or following
        variables.update(changed)
        agent = following
    return pieces, history[len(messages) :], agent.name, variables


def streamed(chunks, agent, first, pieces):
    """The pieces of one reply, and all of them put together."""
    whole = {"content": "", "sender": first.name, "role": "assistant", "function_call": None}
    calls = {}
    pieces.append({"delim": "start"})
    for chunk in chunks:
        if not chunk.choices:
            continue
        delta = chunk.choices[0].delta.model_dump()
        pieces.append({**delta, "sender": agent.name} if delta["role"] == "assistant" else delta)
        whole["content"] += delta["content"] or ""
        for one in delta["tool_calls"] or ():
            known = calls.setdefault(
                one["index"], {"function": {"arguments": "", "name": ""}, "id": "", "type": ""}
            )
            known["id"] += one["id"] or ""
            known["type"] += one["type"] or ""
            known["function"]["name"] += one["function"]["name"] or ""
            known["function"]["arguments"] += one["function"]["arguments"] or ""
    pieces.append({"delim": "end"})
    return {**whole, "tool_calls": list(calls.values()) or None}


# --- what is played: some agents, their functions, and a script ---

AGENTS, FUNCTIONS, KEYS = range(3), range(5), st.sampled_from(["a", "b"])
SOMEBODY = st.none() | st.sampled_from(AGENTS)
HAND_OVER = st.tuples(st.just("hand over"), st.sampled_from(AGENTS))
RESULT = st.tuples(
    st.just("result"),
    st.text("xyz", max_size=3),
    SOMEBODY,
    st.dictionaries(KEYS | st.integers(0, 1), st.integers(0, 9), max_size=2),
)
OTHER = st.one_of(
    st.tuples(
        st.just("say"),
        st.one_of(st.text("xyz", max_size=3), st.integers(), st.none(), st.just({"a": [1]})),
    ),
    st.tuples(st.just("write"), KEYS, st.integers(0, 9)),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("read"), KEYS),
    st.tuples(st.just("add"), st.just("")),
    st.tuples(st.just("raise"), st.sampled_from([Trouble("no"), ValueError("no"), KeyError("no")])),
)
DEEDS = st.tuples(HAND_OVER, HAND_OVER | RESULT, RESULT, OTHER, OTHER)
# The functions that it does not have, and whether it may call them in parallel.
AGENT = st.tuples(st.sets(st.sampled_from(FUNCTIONS), max_size=2), st.booleans())
CALLED = st.sampled_from([0, 1, 2, 0, 1, 2, 3, 4]).map(lambda index: (f"f{index}", "{}"))
CALL = st.one_of(
    *[CALLED] * 8, st.sampled_from([("nobody", "{}"), ("f3", '{"more": 1}'), ("f4", "no JSON")])
)
REPLY = st.tuples(st.text("xyz ", max_size=6), st.lists(CALL, max_size=3))
CALLING = st.tuples(st.text("xyz ", max_size=6), st.lists(CALL, min_size=1, max_size=3))
STORY = st.lists(CALLING, min_size=1, max_size=4).map(lambda replies: [*replies, ("done", [])])
REPLIES = st.one_of(STORY, STORY, st.lists(REPLY, max_size=3))
WORLD = st.fixed_dictionaries(
    {
        "deeds": DEEDS,
        "awaited": st.sets(st.sampled_from(FUNCTIONS)),
        "agents": st.tuples(AGENT, AGENT, AGENT),
    }
)
OPTIONS = st.fixed_dictionaries(
    {
        "stream": st.booleans(),
        "model_override": st.sampled_from([None, "another"]),
        "max_turns": st.one_of(*[st.just(float("inf"))] * 4, st.integers(0, 6)),
        "execute_tools": st.sampled_from([True] * 7 + [False]),
    }
)


def do(deed, agents, variables):
    """What a function does."""
    match deed:
        case ("say", value):
            return value
        case ("hand over", index):
            return agents[index]
        case ("result", value, index, changed):
            return Result(
                value=value,
                agent=None if index is None else agents[index],
                context_variables=changed,
            )
        case ("write", key, value):
            variables[key] = value
            return f"{key} is {value}"
        case ("delete", key):
            return variables.pop(key, None)
        case ("read", key):
            return variables[key]
        case ("raise", error):
            raise error


def function_of(index, deed, agents, *, is_async):
    """A function of an agent.

    Those that have to do with the context variables have the parameter, and no others.
    """
    if deed[0] in ("write", "delete", "read"):

        def function(context_variables):
            return do(deed, agents, context_variables)

        async def coroutine(context_variables):
            await asyncio.sleep(0)
            return do(deed, agents, context_variables)

    elif deed[0] == "add":

        def function(more):
            return more + 1

        async def coroutine(more):
            return more + 1

    else:

        def function():
            return do(deed, agents, None)

        async def coroutine():
            await asyncio.sleep(0)
            return do(deed, agents, None)

    chosen = coroutine if is_async else function
    chosen.__name__ = chosen.__qualname__ = f"f{index}"
    return chosen


def agents_of(world, *, may_await):
    agents = [
        Agent(name=f"agent {index}", model=f"model {index}", instructions=f"be {index}")
        for index in AGENTS
    ]
    functions = [
        function_of(index, deed, agents, is_async=may_await and index in world["awaited"])
        for index, deed in enumerate(world["deeds"])
    ]
    for agent, (missing, parallel) in zip(agents, world["agents"], strict=True):
        agent.functions = [functions[index] for index in FUNCTIONS if index not in missing]
        agent.parallel_tool_calls = parallel
    return agents


def script_of(replies):
    return [
        reply(
            text, *(call(name, f"c{number}", _raw=raw) for number, (name, raw) in enumerate(calls))
        )
        for text, calls in replies
    ]


# --- how it is played ---


def outcome(play):
    """What has come of it: the value, or the error."""
    try:
        return play()
    except Exception as error:
        return type(error), str(error)


def seen(client):
    """What was asked, with the names of the tools only."""
    return [
        {
            **one,
            "tools": [
                tool if isinstance(tool, str) else tool["function"]["name"]
                for tool in one["tools"] or ()
            ],
        }
        for one in client.requests
    ]


def finished(pieces):
    *pieces, last = pieces
    return pieces, last["response"]


def played(how, client, agent, variables, options):
    """The same by the Swarm that runs on actors, in one of the ways in which it can be called."""
    swarm = Swarm(client)

    async def in_loop():
        if how == "in a loop":
            return (
                finished(swarm.run(agent, USER, variables, **options))
                if options["stream"]
                else ([], swarm.run(agent, USER, variables, **options))
            )
        if options["stream"]:
            return finished(
                [piece async for piece in await swarm.arun(agent, USER, variables, **options)]
            )
        return [], await swarm.arun(agent, USER, variables, **options)

    if how != "run":
        pieces, response = asyncio.run(in_loop())
    elif options["stream"]:
        pieces, response = finished(swarm.run(agent, USER, variables, **options))
    else:
        pieces, response = [], swarm.run(agent, USER, variables, **options)
    return pieces, response.messages, response.agent.name, response.context_variables


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    WORLD,
    REPLIES,
    st.dictionaries(KEYS, st.integers(0, 9)),
    OPTIONS,
    st.sampled_from(["run", "arun", "in a loop"]),
    st.sampled_from([ScriptedClient, AsyncScriptedClient]),
)
def test_the_loop_is_that_of_swarm(world, replies, variables, options, how, kind):
    told, before = ScriptedClient(*script_of(replies)), copy.deepcopy(variables)
    expected = outcome(
        lambda: rules(told, agents_of(world, may_await=False)[0], USER, variables, **options)
    )
    client = kind(*script_of(replies))
    found = outcome(
        lambda: played(how, client, agents_of(world, may_await=True)[0], variables, options)
    )
    assert found == expected
    assert seen(client) == seen(told)
    assert variables == before, "what the caller has given is the caller's"
