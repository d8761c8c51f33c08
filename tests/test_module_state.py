"""No module has state of its own: what it binds is constant, by its kind or because nothing changes
it, or is listed here with the reason, `Final` or not.
"""

import ast
import dataclasses
import functools
import importlib
import re
import struct
import threading
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from types import FunctionType, GenericAlias, MappingProxyType, NoneType, UnionType
from typing import ParamSpec, TypeVar

import msgspec
import pytest

from tests.doubles.over import over

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for room in ("actors", "runtime") for path in (ROOT / room).rglob("*.py"))

# State that belongs to no system, run or definition, with the reason why it is the process's.
STATE = {
    "actors.agents_sdk.recording": {
        "_scope": (
            "a context variable: the SDK's functions find the recorded run to which their caller "
            "belongs"
        )
    },
    "actors.agents_sdk.runner": {
        "_systems": "the system of each loop on which runs of the SDK are stored"
    },
    "actors.agents_sdk.seams": {
        "_local_call": "a context variable: what executes a local tool is not told which call it is"
    },
    "runtime.actor.actor": {
        "_of_thread": "passes a cell around the `__init__` of a user's actor; each thread has its own"
    },
    "runtime.actor.current": {
        "_lock": "guards the names below",
        "_making_default": "guards the making of the default system",
        "_by_loop": "`MyActor.start()` finds the system of the running loop",
        "_scopes": "the open `with ActorSystem.in_thread()` blocks",
        "_of_thread": "the system of a thread actor's thread",
        "_default": "the system of programs that make none",
    },
    "runtime.agent.hooks": {
        "_everywhere": "hooks of all runs of the process, which a library adds without knowing its Runners"
    },
    "runtime.agent.override": {
        "_open": "a context variable: what a test has replaced holds for what is begun there"
    },
    "runtime.codec.packing": {"_registry": "`register_type` makes a class known to the process"},
    "runtime.clock": {"_of_loops": "what waits on a loop finds the clock of its system"},
    "runtime.run.follow.live_runs": {
        "_live": (
            "the runs of each loop, for followers that have another Runner; those of closed "
            "loops are dropped"
        )
    },
    "runtime.services": {
        "_using": "the last service of the process that uses a store closes it",
        "_using_lock": "guards it",
    },
    "runtime.run.run_factory": {
        "_systems": (
            "the system of each loop for Runners that are given none; those of closed loops are "
            "dropped"
        )
    },
    "runtime.run.casting": {
        "_BEGIN": (
            "the envelope by which every agent begins: it has no sender, so nothing in it is "
            "ever set"
        )
    },
    "runtime.data.chat": {
        "_drawn": "what is left of a block of the operating system's entropy; a fork throws it away"
    },
    "runtime.durability.store_owner": {
        "_owners": "other systems of the process ask whether an owner is gone; weak",
        "_process": "a cache of the process's own name",
    },
    "runtime.cluster.on_ray.connection": {"ray_connection": "Ray's connection is the process's"},
    "runtime.cluster.client.refs": {
        "_clients": "the clients of each loop, by which refs that come in bytes reach their actors; weak"
    },
    "runtime.sessions.inbox": {
        "_known": "the inboxes of each store in which this process has posted; weak",
        "_lock": "held while these are read or changed, by any thread",
    },
    "runtime.durability.store_access": {
        "_entered": (
            "the owners of systems whose loop has ended without a word are ended by others of "
            "the process; weak"
        ),
        "_beside": (
            "the leases of a store that has no methods for them, for all Runners that use it; weak"
        ),
    },
    "runtime.a2a.server.gate": {
        "_refused_for_now": (
            "a context variable: the SDK's routes are between the gate and the operations that "
            "refuse"
        )
    },
    "runtime.a2a.server.grpc_server": {
        "_caller": "passes who makes a call from the interceptor to the handler, in the task of the call"
    },
    "runtime.mcp.connection": {
        "_asking": "a context variable: the SDK hands a question of the server to nobody's call"
    },
    "runtime.cli.commands": {"app": "the command; typer collects its subcommands in it"},
    "runtime.log": {
        "loggers": "loggers are the process's",
        "_agent": "a context variable: a user's line in a tool says whose it is",
        "work_as": "sets the one above",
        "work_for": "sets the one below",
        "_run": (
            "a context variable: as above, and `current_session()` works without a context in reach"
        ),
    },
    "runtime.telemetry.switch": {"switch": "OpenTelemetry's providers are the process's"},
    "runtime.stores.sqlite.files": {
        "_MAKING": "one file at a time is made with the permissions of its own; they are the process's",
        "fcntl": "a module, or None",
    },
    "runtime.stores.forks": {
        "_watched": "a fork concerns the connections of all stores; weak",
        "_held": "those that wait for the end of a fork",
        "_lock": "guards both",
    },
    "runtime.testing.tool_contexts": {
        "_makers": "`offbook.actors` says, when it is imported, how a context for tools is made"
    },
    "runtime.system.full_collections": {
        "process": "the thresholds of Python's garbage collector are the process's"
    },
    "runtime.system.process_end": {
        "_workers": "threads that are to end before the interpreter does"
    },
    "runtime.system.fork": {
        "_systems": "a fork concerns all systems; weak",
        "_held": "the locks held during a fork",
        "_watching": "guards both",
        "starting": "held while a run is started, and during a fork",
    },
}
# Constants of which this test cannot see that they are, with the reason why they are.
CONSTANTS = {
    "actors.chat_agent.chat_model_agent": {
        "_DEFAULT_SETTINGS": "its mapping is typed as one that is only read"
    },
    "actors.handoffs.transfer": {
        "exit_tool": "a Tool refuses to be changed",
        "transfer_tool": "a Tool refuses to be changed",
    },
    "runtime.testing.plugin": dict.fromkeys(
        ("manual_clock", "memory_runner", "scripted"), "fixtures, as pytest makes them"
    ),
    "runtime.observe.event_json": dict.fromkeys(
        ("EVENT_SCHEMA", "_CALL", "_NUMBER", "_MAYBE_TEXT", "_PART", "_STEP", "_TEXT", "_USAGE"),
        "a schema, which is only read",
    ),
    "runtime.observe.svg": dict.fromkeys(("_DARK", "_LIGHT"), "colours, which are only read"),
    "actors.prebuilt.plan_execute": {
        "_PLAN": "a schema, which is only sent",
        "_RESPOND": "a schema, which is only sent",
    },
    "runtime.agent.run_messages": {"LOST": "a message is not changed after it was made"},
    "runtime.agent.session_values": {"_OUTSIDE": "it refuses to take values"},
    "runtime.codec.builtin": {"VALUE_MARKS": "a Mark is not changed after it was made"},
    "runtime.codec.packing": {"_MARKS": "a Mark is not changed after it was made"},
    "runtime.run.effects": dict.fromkeys(
        ("LEAVE", "NOTHING", "REFUSE", "SUSPEND", "WRITE"),
        "effects are not changed after they were made",
    ),
    "runtime.models.openai_chat_request": {
        "_CHAT": "two functions that read and fill a message's own slot"
    },
    "runtime.models.openai_responses_request": {
        "_RESPONSES": "two functions that read and fill a message's own slot"
    },
    "runtime.models.wire.body": {"_encode": "an encoder of JSON has no state but its options"},
    "runtime.models.protocol": {
        "_DEFAULT_SETTINGS": "its mapping is typed as one that is only read"
    },
    "runtime.tracing": {"_NONE": "a span without a tracer keeps nothing"},
}

IMMUTABLE = (NoneType, bool, int, float, complex, str, bytes, type, Enum, re.Pattern, struct.Struct)
TYPES = (UnionType, GenericAlias, TypeVar, ParamSpec)
# The methods of a dict, list or set that leave it as it is, and the functions that only read what
# they are given.
READING = {"copy", "count", "get", "index", "items", "keys", "union", "values"}
READERS = {
    "all",
    "any",
    "dict",
    "enumerate",
    "frozenset",
    "len",
    "list",
    "max",
    "min",
    "set",
    "sorted",
    "sum",
    "tuple",
}


def name_of(path):
    return str(path.relative_to(ROOT))


def module_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in SOURCES}
PARENTS = {}


@functools.cache
def tree_of(module):
    path = MODULES[module]
    tree = ast.parse(path.read_text(), name_of(path))
    remember_parents(tree)
    return tree


def remember_parents(tree):
    PARENTS.update(
        (child, parent) for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)
    )


def bound_names(body):
    """The names that a module or class binds at its top level, in the blocks of an `if` or a `try`
    too; but for functions, classes and imports.
    """
    for node in body:
        for block in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.ExceptHandler | ast.With | ast.For):
                yield from bound_names(getattr(node, block, []))
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.For):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (
                name.id
                for target in targets
                for name in ast.walk(target)
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            )


def is_constant(value):
    """Whether the value, with all that it holds, is of a kind that cannot change."""
    if (
        isinstance(value, IMMUTABLE + TYPES)
        or type(value) is object
        or type(value).__module__ in ("typing", "collections.abc")
    ):
        return True
    if isinstance(value, FunctionType):
        return not hasattr(value, "cache_info")
    if isinstance(value, tuple | frozenset):
        return all(map(is_constant, value))
    if isinstance(value, MappingProxyType):
        return all(map(is_constant, value.values()))
    if isinstance(value, msgspec.Struct) and value.__struct_config__.frozen:
        return all(is_constant(getattr(value, name)) for name in value.__struct_fields__)
    if dataclasses.is_dataclass(value) and type(value).__dataclass_params__.frozen:
        return all(is_constant(getattr(value, field.name)) for field in dataclasses.fields(value))
    return (
        not getattr(value, "__slots__", True)
        and not hasattr(value, "__dict__")
        and not isinstance(value, Iterable)
    )


def only_reads(node):
    """Whether this use of a dict, list or set can neither change it nor hand it to what might."""
    outer = PARENTS[node]
    if isinstance(outer, ast.Subscript):
        return outer.value is node and isinstance(outer.ctx, ast.Load)
    if isinstance(outer, ast.Attribute):
        return outer.attr in READING and isinstance(PARENTS[outer], ast.Call)
    if isinstance(outer, ast.Call):
        return node in outer.args and isinstance(outer.func, ast.Name) and outer.func.id in READERS
    if isinstance(outer, ast.keyword):
        return outer.arg is None  # f(**table)
    if isinstance(outer, ast.Dict):
        return node in outer.values and outer.keys[outer.values.index(node)] is None  # {**table}
    if isinstance(outer, ast.For | ast.comprehension):
        return outer.iter is node
    return isinstance(outer, ast.Compare | ast.BinOp | ast.Starred)


def uses(tree, names, modules):
    """Where one of the names is read, as itself or as an attribute of a module: `name`,
    `module.name`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            yield node
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id, node.attr) in modules
        ):
            yield node


@functools.cache
def imported_by(module):
    """All that it imports from elsewhere."""
    return [
        alias
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


def is_never_changed(module, name):
    """Whether all that the package does with it is to read it: its own module, and each that
    imports it, or its module, by whatever name.
    """
    stem = module.rpartition(".")[2]
    for own in MODULES:
        imported = imported_by(own)
        if own != module and not any(alias.name in (name, stem) for alias in imported):
            continue
        names = {alias.asname or alias.name for alias in imported if alias.name == name}
        modules = {(alias.asname or alias.name, name) for alias in imported if alias.name == stem}
        if not all(
            map(only_reads, uses(tree_of(own), {name} if own == module else names, modules))
        ):
            return False
    return True


def state_of(module):
    """The names that a module binds to what can change, or binds again with `global`, and its
    functions that remember their results.
    """
    tree, values = tree_of(module), vars(importlib.import_module(f"offbook.{module}"))
    rebound = {
        name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names
    }
    caches = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not is_constant(values[node.name])
    }
    bound = {name for name in bound_names(tree.body) if name in values and name != "__all__"}
    tables = {
        name
        for name in bound
        if type(values[name]) in (dict, list, set)
        and is_constant(_frozen(values[name]))
        and is_never_changed(module, name)
    }
    return rebound | caches | {name for name in bound - tables if not is_constant(values[name])}


def _frozen(table):
    return MappingProxyType(table) if isinstance(table, dict) else tuple(table)


@over(MODULES)
def test_a_module_has_no_state_but_what_is_listed_with_a_reason(module):
    assert state_of(module) == set(STATE.get(module, ())) | set(CONSTANTS.get(module, ()))


@over(MODULES)
def test_no_class_shares_state_among_its_instances(module):
    values = vars(importlib.import_module(f"offbook.{module}"))
    for owner in (node for node in tree_of(module).body if isinstance(node, ast.ClassDef)):
        shared = vars(values[owner.name])
        changing = (dict, list, set, bytearray, threading.local, type(threading.Lock()))
        assert [
            name for name in bound_names(owner.body) if isinstance(shared.get(name), changing)
        ] == [], f"shared by all instances of {owner.name}"


@pytest.mark.parametrize(
    "use",
    [
        "T['a'] = 1",
        "del T['a']",
        "T['a'] += 1",
        "T.update(a=1)",
        "T.clear",
        "other = T",
        "f(T)",
        "f(x=T)",
        "[T]",
        "{'a': T}",
        "x or T",
        "return_(T)",
        "T.x = 1",
    ],
)
def test_what_may_change_a_table_is_found(use):
    assert not reads_only(use)


@pytest.mark.parametrize(
    "use",
    [
        "T['a']",
        "T.get('a')",
        "'a' in T",
        "for x in T: pass",
        "[x for x in T]",
        "f(**T)",
        "{**T}",
        "[*T]",
        "len(T)",
        "T | {}",
    ],
)
def test_what_only_reads_a_table_is_none_of_that(use):
    assert reads_only(use)


def reads_only(code):
    tree = ast.parse(code)
    remember_parents(tree)
    return all(map(only_reads, uses(tree, {"T"}, set())))


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        set(),
        ({},),
        threading.Lock(),
        threading.local(),
        iter(()),
        MappingProxyType({"a": []}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_can_change_is_no_constant(value):
    assert not is_constant(value)
