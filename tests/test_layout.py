"""What a newcomer may rely on: which way imports point, and what is listed where."""

import ast
import configparser
import functools
import importlib
import json
import pkgutil
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

from tests.doubles.over import over

ROOT = Path(__file__).parents[1]
ROOMS = ("actors", "runtime")

# The order of the rooms, the lowest first: a room imports only from those before it, at run time
# and for its types alike. A name in brackets is a layer of plain modules at the top of its package;
# `runtime/` as a whole is below `actors/`.
ORDER = {
    "runtime": {
        "(floor)": (
            "errors",
            "clock",
            "log",
            "backoff",
            "environment",
            "greenlets",
            "listening",
            "loopback",
            "maybe_await",
            "option_names",
            "shown_text",
            "tasks",
            "tracing",
            "unpicklable",
        ),
        "data": (),
        "models": (),
        "telemetry": (),
        "codec": (),
        "stores": (),
        "actor": (),
        "system": (),
        "agent": (),
        "durability": (),
        "sessions": (),
        "run": (),
        "(front)": ("session", "runner", "blocking", "services"),
        "observe": (),
        "testing": (),
        "a2a": (),
        "console": (),
        "mcp": (),
        "cluster": (),
        "cli": (),
    },
    "actors": {
        "tools": (),
        "(agents)": ("agent", "workflow", "guardrail", "middleware"),
        "handoffs": (),
        "chat_agent": (),
        "mcp": (),
        "remote": (),
        "prebuilt": (),
        "realtime": (),
        "agents_sdk": (),
        "swarm": (),
        "demo": (),
    },
}
# What is imported upwards when it is called, and not before: a method that makes something of a
# higher room for its caller.
LAZY = {
    ("actors.agent", "actors.handoffs.agent_tool"),
    ("actors.agent", "actors.handoffs.background"),
    ("runtime.actor.current", "runtime.system.threaded"),
    ("runtime.data.run_result", "runtime.observe.result_html"),
    ("runtime.runner", "runtime.observe.timeline"),
}
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
ALL_FILES = sorted(
    {
        *SOURCES,
        *(
            path
            for folder in ("tests", "benchmarks", "examples")
            for path in (ROOT / folder).rglob("*.py")
        ),
    }
)
PACKAGES = sorted(path.parent for path in SOURCES if path.name == "__init__.py")


def name_of(path):
    return str(path.relative_to(ROOT))


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(["offbook", *parts]).removesuffix(".__init__")


@functools.cache
def parse(path):
    return ast.parse(path.read_text(), name_of(path))


def imported_modules(path):
    """The absolute names of all modules that the file imports, wherever in it, with what it takes
    from them.
    """
    here = module_of(path).split(".")
    package = here if path.name == "__init__.py" else here[:-1]
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_the_rooms_are_there():
    assert {ROOT / room for room in ROOMS} <= set(PACKAGES)
    assert len(SOURCES) > len(ROOMS)


@over([path for path in SOURCES if "runtime" in path.relative_to(ROOT).parts], name_of)
def test_the_runtime_never_imports_actors(path):
    assert [
        name
        for name in imported_modules(path)
        if name.split(".")[:2] == ["offbook", "actors"] or name.split(".")[0] == "actors"
    ] == []


def test_the_runtime_does_not_find_its_way_to_actors_by_name_either():
    """Nothing that is imported with it is one of them."""
    assert [
        name for name in imported_by("offbook.runtime") if name.startswith("offbook.actors")
    ] == []


@over(SOURCES, name_of)
def test_a_room_imports_its_own_files_relatively(path):
    absolute = [
        node
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ImportFrom)
        and not node.level
        and (node.module or "").startswith("offbook")
    ]
    assert [ast.unparse(node) for node in absolute] == []


def test_the_picture_in_contributing_names_each_room():
    """CONTRIBUTING.md draws the order of the packages: one that is missing there is found by
    nobody.
    """
    text = (ROOT / "CONTRIBUTING.md").read_text()
    drawn = {
        word.rstrip("/")
        for word in re.findall(
            r"[a-z0-9_]+/?", text[text.index("## Packages") : text.index("## Where is")]
        )
    }
    rooms = {
        room
        for package in ORDER.values()
        for name, files in package.items()
        for room in (files or (name,))
    }
    assert rooms - drawn == set()


def test_the_table_of_tests_names_each_test_file_once():
    tests = ROOT / "tests"
    named = re.findall(r"`([\w/]*test_\w+\.py)`", (tests / "README.md").read_text())
    assert sorted(named) == sorted(
        str(path.relative_to(tests)) for path in tests.rglob("test_*.py")
    )


@over(ALL_FILES, name_of)
def test_modules_have_a_docstring(path):
    with path.open("rb") as lines:
        first = next(
            token
            for token in tokenize.tokenize(lines.readline)
            if token.type not in (tokenize.ENCODING, tokenize.COMMENT, tokenize.NL)
        )
    assert first.type == tokenize.STRING
    docstring = ast.literal_eval(first.string)
    assert isinstance(docstring, str)
    assert docstring.splitlines()[0].strip()


def test_every_package_is_listed():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    folders = {path.parent for path in SOURCES}
    assert sorted(folders) == PACKAGES, "every folder with modules is a package"
    listed = setup["options"]["packages"].split()
    assert listed.pop(0) == "offbook"  # the folder `api`, of which tests/test_api.py speaks
    assert sorted(listed) == sorted(module_of(folder / "__init__.py") for folder in folders)
    places = dict(
        line.replace(" ", "").split("=")
        for line in setup["options"]["package_dir"].strip().splitlines()
    )
    for folder in folders:
        name, place = module_of(folder / "__init__.py"), name_of(folder)
        room = next(
            known
            for known in sorted(places, reverse=True)
            if name == known or name.startswith(known + ".")
        )
        assert "/".join([places[room], *name.removeprefix(room).split(".")[1:]]) == place


def test_every_room_is_typed():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    for room, package in (("api", "offbook"), *((room, f"offbook.{room}") for room in ROOMS)):
        assert (ROOT / room / "py.typed").is_file()
        assert "py.typed" in setup["options.package_data"][package].split()


def in_order(names):
    """CONSTANTS first, then Classes, then functions, as the linter has it."""
    return sorted(set(names), key=lambda name: (not name.isupper(), not name[0].isupper(), name))


@over([module_of(folder / "__init__.py") for folder in PACKAGES])
def test_public_names_are_sorted_and_complete(package):
    module = importlib.import_module(package)
    public = list(getattr(module, "__all__", []))
    assert public == in_order(public)
    submodules = {info.name for info in pkgutil.iter_modules(module.__path__)}
    # pytest adds names that are no identifiers to the modules of a plugin that is installed.
    visible = {name for name in vars(module) if name.isidentifier() and not name.startswith("_")}
    assert visible - submodules <= set(public), (
        "what can be imported without a dot is public: give it a name with an underscore, or "
        "list it"
    )
    assert [
        name for name in public if not hasattr(module, name)
    ] == []  # `__version__` is looked up when a program asks for it


@over([path for path in SOURCES if path.name != "__init__.py"], name_of)
def test_the_names_that_a_module_offers_are_its_own(path):
    module = importlib.import_module(module_of(path))
    offered = list(module.__all__)
    assert offered == in_order(offered)
    defined = set()
    for node in parse(path).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign):
            defined |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            defined.add(node.target.id)
    assert set(offered) <= defined


RANKS = {
    (package, room): rank
    for package in ("runtime", "actors")
    for rank, room in enumerate(ORDER[package], start=100 * (package == "actors"))
}


def room_of(module):
    """The package and the room of a module, which is named without `offbook`."""
    package, first, *_ = module.split(".")
    if (package, first) in RANKS:
        return package, first
    return package, next(layer for layer, plain in ORDER[package].items() if first in plain)


def inner_imports(path):
    """What a file imports from this distribution, as (module, when): at run time, for its types, or
    lazily.
    """
    tree = parse(path)
    typing = {
        id(node)
        for block in tree.body
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    package = module_of(path).split(".")[1:]
    package = package if path.name == "__init__.py" else package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join(
                [*package[: len(package) - node.level + 1], *([node.module] if node.module else [])]
            )
            when = "typing" if id(node) in typing else "run time" if node in tree.body else "lazy"
            for name in (f"{base}.{alias.name}" for alias in node.names):
                yield (name if (ROOT / (name.replace(".", "/") + ".py")).exists() else base), when


@over(
    [path for path in SOURCES if path.parent.name not in ORDER or path.name != "__init__.py"],
    name_of,
)
def test_the_order_of_rooms_is_held(path):
    own = module_of(path).removeprefix("offbook.")
    up = {
        (own, module)
        for module, _ in inner_imports(path)
        if RANKS[room_of(module)] > RANKS[room_of(own)]
    }
    lazy = {(own, module) for module, when in inner_imports(path) if when == "lazy"}
    assert up - (LAZY & lazy) == set()


def test_each_lazy_import_upwards_is_still_there():
    found = {
        (own, module)
        for path in SOURCES
        for own in [module_of(path).removeprefix("offbook.")]
        for module, when in inner_imports(path)
        if when == "lazy"
    }
    assert found >= LAZY


def test_every_room_has_its_place_in_the_order():
    for package, rooms in ORDER.items():
        entries = {
            path.name if path.is_dir() else path.stem
            for path in (ROOT / package).iterdir()
            if path.suffix == ".py" or (path / "__init__.py").exists()
        }
        plain = {name for layer in rooms.values() for name in layer}
        assert entries - {"__init__"} == plain | {
            room for room in rooms if not room.startswith("(")
        }


def mapped(folder):
    """The files and packages that a package's docstring names, in its order."""
    words = (
        word.strip(",.:()`")
        for word in (ast.get_docstring(parse(folder / "__init__.py")) or "").split()
    )
    here = {
        path.stem
        for path in folder.iterdir()
        if path.name != "__init__.py" and (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    return list(dict.fromkeys(word for word in words if word in here)), here


@over(PACKAGES, name_of)
def test_every_package_is_a_map_of_its_files(folder):
    listed, here = mapped(folder)
    assert here - set(listed) == set()


def imported_by(name):
    """What an interpreter has imported after that module, and had not before."""
    code = (
        f"import sys, json; before = set(sys.modules); import {name}; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    return json.loads(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
        ).stdout
    )


NEEDED = {"pykka", "msgpack", "msgspec", "typing_extensions"}


@pytest.mark.parametrize(
    ("room", "needs"),
    [("offbook.runtime", NEEDED), ("offbook.actors", NEEDED)],
)
def test_importing_a_room_imports_what_it_needs_and_nothing_else(room, needs):
    """So that it takes no time, and works without the extras."""
    tops = {name.split(".")[0] for name in imported_by(room)} - {"offbook"}
    strange = {top for top in tops if top not in sys.stdlib_module_names}
    assert {
        top
        for top in strange
        if not top.startswith(("_cython", "cython_runtime", "_sysconfigdata"))
    } == needs  # msgpack's compiled part brings these
    assert not {"unittest", "multiprocessing", "http", "sqlite3"} & tops


def test_importing_starts_nothing():
    code = (
        "import threading, offbook.runtime, offbook.actors; assert threading.active_count() == "
        "1, threading.enumerate()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# Private names of other libraries that have no public twin, by file, with the reason. Everything of
# this package goes through a named door.
OTHERS_PRIVATE = {
    "actors/agents_sdk/seams.py": {
        "_invoke_function_tool_with_metadata",
        "_execute_action_and_capture",
    },  # of the SDK: where its calls are recorded
    "actors/agents_sdk/results.py": {  # of the SDK's `RunState`: a result is made of it
        "_context",
        "_current_agent",
        "_input_guardrail_results",
        "_model_responses",
        "_original_input",
        "_output_guardrail_results",
        "_session_items",
    },
    "runtime/system/registry.py": {
        "_actor_refs",
        "_actor_refs_lock",
    },  # pykka's registry, whose container is ours
    "runtime/actor/receive.py": {
        "_ActorStop"
    },  # the message of pykka's own `stop()`, which has to be understood
    "runtime/models/wire/aiohttp_transport.py": {
        "_close",
        "_factory",
    },  # of aiohttp's connector: to close it without a task, and to know what was sent
    # Of redis's connections: there is no other way to wait for one and for something else, or to
    # let go of them in a forked process.
    "runtime/stores/redis/listening.py": {"_sock", "_available_connections", "_in_use_connections"},
    "runtime/codec/kinds.py": {"_field_defaults"},  # of a named tuple, which documents it
}


def private_names_from_outside(tree):
    """The private attributes that a module reads of what is not `self` or `cls`, and that it does
    not define itself.
    """
    defined, used = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif (
            isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
        ):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                used.add(node.attr)
            elif isinstance(node.ctx, ast.Store):
                defined.add(node.attr)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "hasattr", "setattr", "delattr")
        ):
            of, name = node.args[:2]
            if (
                isinstance(name, ast.Constant)
                and name.value[:1] == "_"
                and name.value[:2] != "__"
                and ast.unparse(of) not in ("self", "cls")
            ):
                used.add(name.value)
    return used - defined - {"_fields"}  # of a NamedTuple, which documents it


@over(SOURCES, name_of)
def test_no_module_reads_what_is_private_to_another(path):
    assert private_names_from_outside(parse(path)) == OTHERS_PRIVATE.get(name_of(path), set())
