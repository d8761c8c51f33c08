"""What this package needs of the SDK that is installed: which version, and which of its private
names.
"""

import importlib
import importlib.metadata
import subprocess
import sys

import pytest

from offbook.actors.agents_sdk.seams import PRIVATE

HIDDEN = """if True:
    import importlib.metadata, sys
    version = importlib.metadata.version

    def looked_up(name):
        if name == "openai-agents":
            {what}
        return version(name)

    importlib.metadata.version = looked_up
    try:
        import offbook.agents_sdk
    except ImportError as error:
        print(error)
"""


@pytest.mark.parametrize("name", PRIVATE)
def test_each_private_name_of_the_sdk_is_where_it_was(name):
    module, _, rest = name.rpartition(".")
    try:
        owner = importlib.import_module(module)
    except ModuleNotFoundError:
        module, _, cls = module.rpartition(".")
        owner = getattr(importlib.import_module(module), cls)
    assert hasattr(owner, rest)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (
            "raise importlib.metadata.PackageNotFoundError(name)",
            "needs the package openai-agents. Install it: pip install 'offbook[agents-sdk]'.",
        ),
        (
            "return '0.21.3'",
            "needs openai-agents 0.22 or newer, got 0.21.3. Update it: pip install -U "
            "'offbook[agents-sdk]'.",
        ),
    ],
)
def test_a_missing_or_old_sdk_is_named(what, said):
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN.format(what=what)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert said in done.stdout


def test_offbook_without_the_sdk_does_not_import_it():
    code = "import sys, offbook.actors, offbook.runtime; print('agents' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
        ).stdout.strip()
        == "False"
    )
