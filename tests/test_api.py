"""`import offbook`: the names that most programs need, each imported when it is first used."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import offbook
from offbook import actors, runtime

API = Path(__file__).parents[1] / "api" / "__init__.py"
NAMES = [name for name in offbook.__all__ if name != "__version__"]


def test_each_name_is_the_one_of_its_package():
    for name in NAMES:
        homes = [package for package in (runtime, actors) if name in package.__all__]
        assert homes, name
        assert all(getattr(offbook, name) is getattr(home, name) for home in homes), name


def test_the_names_are_sorted_and_those_that_a_type_checker_sees():
    assert sorted(NAMES) == NAMES
    imports = [
        node
        for node in ast.walk(ast.parse(API.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    ]
    assert sorted(alias.name for node in imports for alias in node.names) == NAMES
    assert set(NAMES) <= set(dir(offbook))


def test_importing_the_package_imports_neither_of_those_behind_it():
    code = (
        "import sys, json, offbook; print(json.dumps([name for name in sys.modules if "
        "name.startswith('offbook.')]))"
    )
    assert (
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
            ).stdout
        )
        == []
    )


def test_a_name_of_the_runtime_does_not_import_the_agents():
    code = (
        "import sys; from offbook import Actor, Runner; print([name for name in sys.modules if "
        "name.startswith('offbook.actors')])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
        ).stdout.strip()
        == "[]"
    )


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'offbook' has no attribute 'nothing'"):
        offbook.nothing  # noqa: B018 -- looking is the test
    with pytest.raises(ImportError):
        from offbook import nothing  # noqa: F401


def test_the_version_is_the_packages():
    assert offbook.__version__ == runtime.__version__
