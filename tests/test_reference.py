"""The reference in docs/reference: each page lists what the source has, and nothing else."""

import re

import pytest
import typer

from offbook.runtime import EVENT_SCHEMA, errors
from offbook.runtime.cli.commands import app
from offbook.runtime.models.openai_errors import KINDS
from offbook.runtime.telemetry import meters
from tests import pages

REFERENCE = pages.ROOT / "docs" / "reference"
SETTING = re.compile(
    r'"((?:OFFBOOK|OPENAI|ARK|AZURE_OPENAI|COZELOOP|LANGFUSE|APMPLUS|OTEL|REDIS)_[A-Z_]+)"'
)


def first_cells(page, heading=None):
    """What the first column of the page's tables, or of those below a heading, has in code."""
    text = (REFERENCE / page).read_text()
    if heading is not None:
        text = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_the_settings_page_lists_each_environment_variable_of_the_source():
    source = [
        path.read_text()
        for room in ("runtime", "actors")
        for path in (pages.ROOT / room).rglob("*.py")
    ]
    read = {name for text in source for name in SETTING.findall(text)} | {"MODEL_TYPE"}
    assert read <= set(first_cells("settings.md"))


def test_the_errors_page_lists_each_error_class():
    public = {name for name in errors.__all__ if name[0].isupper()}
    listed = [name for name in first_cells("errors.md") if name[0].isupper()]
    assert sorted(listed) == sorted(public)


def test_the_errors_page_lists_each_kind_of_model_error():
    listed = set(first_cells("errors.md", "Kinds of model errors")) - {"kind"}
    assert {kind for kind, _ in KINDS.values()} <= listed


@pytest.mark.parametrize("part", ["required", "properties"])
def test_the_event_page_lists_each_field_and_each_kind(part):
    listed = set(first_cells("events.md"))
    assert set(EVENT_SCHEMA[part]) <= listed
    assert set(EVENT_SCHEMA["properties"]["kind"]["enum"]) <= listed


def test_the_page_on_spoken_agents_lists_each_event_of_a_session():
    text = (pages.ROOT / "docs" / "guides" / "realtime.md").read_text()
    rows = re.findall(
        r"^\| (`[a-z_`, ]+`) \|", text.partition("| event | meaning |")[2], re.MULTILINE
    )
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    source = (pages.ROOT / "actors" / "realtime" / "events.py").read_text()
    assert listed >= set(re.findall(r'type: Literal\["(\w+)"\]', source))


def test_the_telemetry_page_lists_each_metric():
    source = (pages.ROOT / "runtime" / "telemetry" / "meters.py").read_text()
    made = set(re.findall(r'"((?:offbook|gen_ai)\.[\w.]+)", "', source))
    made |= {
        f"offbook.{name}"
        for table in (meters.GAUGED, meters.COUNTED)
        for name, *_ in table.values()
    }
    made |= {f"offbook.{name}" for name, *_ in meters.WAITING}
    seconds = set(re.findall(r'_seconds\(\s*meter,\s*"([\w.]+)"', source))
    assert set(first_cells("telemetry.md", "Metrics")) == made | seconds


def test_the_command_page_lists_each_command_with_its_options_and_their_defaults():
    text = (REFERENCE / "command.md").read_text()
    sections = dict(
        re.findall(r"^## `offbook (\w+)`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    )
    commands = typer.main.get_command(app).commands
    assert list(sections) == list(commands)
    for name, command in commands.items():
        rows = re.findall(r"^\| (`-.+?) \| (.+?) \| .+ \|$", sections[name], re.MULTILINE)
        options = [
            one for one in command.params if one.param_type_name == "option" and one.name != "help"
        ]
        shown = {None: "none", False: "off"}
        expected = [
            (
                ", ".join(f"`{spelling}`" for spelling in one.opts),
                shown.get(one.default, f"`{one.default}`"),
            )
            for one in options
        ]
        assert rows == expected, name
