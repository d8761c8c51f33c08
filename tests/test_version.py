"""The version that a program can ask for is that of the package that is installed."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

from understudy import runtime


def test_the_version_is_that_of_the_installed_package():
    assert runtime.__version__ == importlib.metadata.version("understudy")
    assert "__version__" in runtime.__all__


def test_importing_does_not_look_the_version_up():
    code = "import sys, json; before = set(sys.modules); import understudy.runtime; print(json.dumps(sorted(set(sys.modules) - before)))"
    imported = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout)
    assert "importlib.metadata" not in imported


def test_no_other_name_is_made_up():
    with pytest.raises(AttributeError, match=r"module 'understudy\.runtime' has no attribute 'nothing'"):
        runtime.nothing  # noqa: B018 -- looking is the test
    with pytest.raises(ImportError):
        from understudy.runtime import nothing  # noqa: F401
