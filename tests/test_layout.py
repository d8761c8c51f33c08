"""What a newcomer may rely on when looking around: which way imports point, how long things are, what is listed where, and where there is state."""

import ast
import configparser
import importlib
import json
import pkgutil
import queue
import subprocess
import sys
import threading
import weakref
from collections import deque
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("actors", "runtime")
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
ALL_FILES = sorted({*SOURCES, *(path for folder in ("tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py"))})
PACKAGES = sorted(path.parent for path in SOURCES if path.name == "__init__.py")

LONGEST_FILE = 400
LONGEST_FUNCTION = 60

# The only state that is not a system's own: see `directory.py` for why. `fork.py` has to know who is to be told; `actor.py` gets a cell past `__init__`.
STATE = {
    "understudy.runtime.directory": {"_lock", "_making_default", "_by_loop", "_scopes", "_of_thread", "_default"},
    "understudy.runtime.fork": {"_systems", "_held", "_one_at_a_time"},
    "understudy.runtime.actor": {"_birth"},
}
MUTABLE = (list, dict, set, bytearray, deque, threading.local, weakref.WeakSet, weakref.WeakKeyDictionary, weakref.WeakValueDictionary, queue.SimpleQueue)


def name_of(path):
    return str(path.relative_to(ROOT))


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(["understudy", *parts]).removesuffix(".__init__")


def parse(path):
    return ast.parse(path.read_text(), name_of(path))


def imported_modules(path):
    """The absolute names of all modules that the file imports, wherever in it, with what it takes from them."""
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


@pytest.mark.parametrize("path", [path for path in SOURCES if "runtime" in path.relative_to(ROOT).parts], ids=name_of)
def test_the_runtime_never_imports_actors(path):
    assert [name for name in imported_modules(path) if name.split(".")[:2] == ["understudy", "actors"] or name.split(".")[0] == "actors"] == []


def test_the_runtime_does_not_find_its_way_to_actors_by_name_either():
    """Nothing that is imported with it is one of them."""
    assert [name for name in imported_by("understudy.runtime") if name.startswith("understudy.actors")] == []


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_room_imports_its_own_files_relatively(path):
    absolute = [node for node in ast.walk(parse(path)) if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("understudy")]
    assert [ast.unparse(node) for node in absolute] == []


@pytest.mark.parametrize("path", ALL_FILES, ids=name_of)
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_functions_are_short(path):
    functions = [node for node in ast.walk(parse(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert {node.name: node.end_lineno - node.lineno + 1 for node in functions if node.end_lineno - node.lineno >= LONGEST_FUNCTION} == {}


@pytest.mark.parametrize("path", ALL_FILES, ids=name_of)
def test_modules_have_a_docstring(path):
    docstring = ast.get_docstring(parse(path))
    assert docstring
    assert docstring.splitlines()[0].strip()


def test_every_package_is_listed():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    folders = {path.parent for path in SOURCES}
    assert sorted(folders) == PACKAGES, "every folder with modules is a package"
    listed = setup["options"]["packages"].split()
    assert sorted(listed) == sorted(module_of(folder / "__init__.py") for folder in folders)
    places = dict(line.replace(" ", "").split("=") for line in setup["options"]["package_dir"].strip().splitlines())
    for folder in folders:
        name, place = module_of(folder / "__init__.py"), name_of(folder)
        room = next(known for known in sorted(places, reverse=True) if name == known or name.startswith(known + "."))
        assert "/".join([places[room], *name.removeprefix(room).split(".")[1:]]) == place


def test_every_room_is_typed():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    for room in ROOMS:
        assert (ROOT / room / "py.typed").is_file()
        assert "py.typed" in setup["options.package_data"][f"understudy.{room}"].split()


def in_order(names):
    """CONSTANTS first, then Classes, then functions, as the linter has it."""
    return sorted(set(names), key=lambda name: (not name.isupper(), not name[0].isupper(), name))


@pytest.mark.parametrize("package", [module_of(folder / "__init__.py") for folder in PACKAGES])
def test_public_names_are_sorted_and_complete(package):
    module = importlib.import_module(package)
    public = list(getattr(module, "__all__", []))
    assert public == in_order(public)
    submodules = {info.name for info in pkgutil.iter_modules(module.__path__)}
    visible = {name for name in vars(module) if not name.startswith("_")}
    assert visible - submodules <= set(public), "what can be imported without a dot is public: give it a name with an underscore, or list it"
    assert set(public) <= visible


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name != "__init__.py"], ids=name_of)
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


def test_every_module_of_the_runtime_is_on_its_map():
    """The docstring of the package says what sits where."""
    words = {word.strip(",.:()`") for word in (ast.get_docstring(parse(ROOT / "runtime" / "__init__.py")) or "").split()}
    assert {path.stem for path in (ROOT / "runtime").glob("*.py") if path.stem != "__init__"} <= words
    assert {path.name for path in (ROOT / "runtime").iterdir() if (path / "__init__.py").exists()} <= words


def variables(tree):
    """The names that a module or class binds to values at its top level, but for constants, which say that they are `Final`."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name) and target.id != "__all__")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and "Final" not in ast.unparse(node.annotation):
            yield node.target.id


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_module_has_state(path):
    module = importlib.import_module(module_of(path))
    locks = (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event)
    known = STATE.get(module_of(path), set())
    assert {name for name in variables(parse(path)) if isinstance(getattr(module, name, None), (*MUTABLE, *locks))} - known == set()
    rebound = {name for node in ast.walk(parse(path)) if isinstance(node, ast.Global) for name in node.names}
    assert rebound - known == set(), "bound again with `global`"
    for owner in (node for node in parse(path).body if isinstance(node, ast.ClassDef)):
        shared = {name for name in variables(owner) if isinstance(vars(getattr(module, owner.name)).get(name), MUTABLE)}
        assert shared == set(), f"shared by all instances of {owner.name}"


def test_the_list_of_known_state_is_no_longer_than_it_has_to_be():
    for name, variables in STATE.items():
        assert variables <= set(vars(importlib.import_module(name)))


def imported_by(name):
    """What an interpreter has imported after that module, and had not before."""
    code = f"import sys, json; before = set(sys.modules); import {name}; print(json.dumps(sorted(set(sys.modules) - before)))"
    return json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout)


@pytest.mark.parametrize(("room", "needs"), [("understudy.runtime", {"pykka", "msgpack"}), ("understudy.actors", {"pykka", "msgpack"})])
def test_importing_a_room_imports_what_it_needs_and_nothing_else(room, needs):
    """So that it takes no time, and works without the extras."""
    tops = {name.split(".")[0] for name in imported_by(room)} - {"understudy"}
    strange = {top for top in tops if top not in sys.stdlib_module_names}
    assert {top for top in strange if not top.startswith(("_cython", "cython_runtime", "_sysconfigdata"))} == needs  # msgpack's compiled part brings these
    assert not {"unittest", "multiprocessing", "http", "sqlite3"} & tops


def test_importing_starts_nothing():
    code = "import threading, understudy.runtime, understudy.actors; assert threading.active_count() == 1, threading.enumerate()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
