"""The version that a program can ask for is that of the package that is installed."""

import importlib.metadata
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from offbook import runtime
from offbook.runtime.cli.commands import app


def test_the_version_is_that_of_the_installed_package():
    assert runtime.__version__ == importlib.metadata.version("offbook")
    assert "__version__" in runtime.__all__


def test_importing_does_not_look_the_version_up():
    code = (
        "import sys, json; before = set(sys.modules); import offbook.runtime; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    imported = json.loads(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
        ).stdout
    )
    assert "importlib.metadata" not in imported


def test_no_other_name_is_made_up():
    with pytest.raises(
        AttributeError, match=r"module 'offbook\.runtime' has no attribute 'nothing'"
    ):
        runtime.nothing  # noqa: B018 -- looking is the test
    with pytest.raises(ImportError):
        from offbook.runtime import nothing  # noqa: F401


def test_the_command_says_it():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (
        0,
        f"offbook {importlib.metadata.version('offbook')}\n",
    )
