"""The pages of the Python API, generated from `__all__` of each public package.

Owns: which packages are public, and the Markdown from which mkdocstrings makes their pages.
The packages are parsed, not imported, because some need an extra. A name that no import and no
definition explains is an error.
"""

import ast
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INDEX = "reference/index.md"


@dataclass(frozen=True)
class Package:
    """A public package or module, and its page."""

    name: str
    source: str
    page: str
    purpose: str


PACKAGES = (
    Package(
        "offbook", "api/__init__.py", "reference/offbook.md", "the names that most programs use"
    ),
    Package(
        "offbook.actors", "actors/__init__.py", "reference/actors.md", "agents, tools, workflows"
    ),
    Package(
        "offbook.runtime",
        "runtime/__init__.py",
        "reference/runtime.md",
        "runs, stores, models, actors, errors",
    ),
    Package(
        "offbook.runtime.stores",
        "runtime/stores/__init__.py",
        "reference/stores.md",
        "protocols for a custom store",
    ),
    Package(
        "offbook.runtime.testing",
        "runtime/testing/__init__.py",
        "reference/testing.md",
        "tests of agents and tools",
    ),
    Package(
        "offbook.runtime.console",
        "runtime/console/__init__.py",
        "reference/console.md",
        "the console",
    ),
    Package(
        "offbook.runtime.cluster",
        "runtime/cluster/__init__.py",
        "reference/cluster.md",
        "many machines, on Ray",
    ),
    Package("offbook.runtime.a2a", "runtime/a2a/__init__.py", "reference/a2a.md", "Agent2Agent"),
    Package(
        "offbook.runtime.mcp.serving",
        "runtime/mcp/serving.py",
        "reference/mcp.md",
        "agents as tools over MCP",
    ),
    Package(
        "offbook.actors.realtime",
        "actors/realtime/__init__.py",
        "reference/realtime.md",
        "spoken agents",
    ),
    Package(
        "offbook.actors.realtime.local",
        "actors/realtime/local/__init__.py",
        "reference/realtime-local.md",
        "a local server for tests of spoken agents",
    ),
    Package(
        "offbook.actors.swarm",
        "actors/swarm/__init__.py",
        "reference/swarm.md",
        "programs of Swarm",
    ),
    Package(
        "offbook.agents_sdk",
        "api/agents_sdk.py",
        "reference/agents-sdk.md",
        "programs of the Agents SDK",
    ),
)


def public_names(package: Package) -> dict[str, str]:
    """Each name in `__all__`, with the module that it is imported from; empty if defined there."""
    tree = ast.parse((ROOT / package.source).read_text())
    imported = {
        alias.asname or alias.name: node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    (listed,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    names = [name for name in ast.literal_eval(listed) if not name.startswith("__")]
    unknown = [name for name in names if name not in imported and name not in defined]
    if unknown:
        msg = f"{package.source}: nothing imports or defines {', '.join(unknown)}."
        raise LookupError(msg)
    return {name: imported.get(name, "") for name in names}


def pages() -> dict[str, str]:
    """The Markdown of each page, by its address."""
    made = {package.page: _page(package) for package in PACKAGES if package.name != "offbook"}
    offbook = next(package for package in PACKAGES if package.name == "offbook")
    return {INDEX: _index(), offbook.page: _exports(offbook), **made}


def _index() -> str:
    rows = [
        f"| [`{package.name}`]({package.page.removeprefix('reference/')}) | {package.purpose} |"
        for package in PACKAGES
    ]
    lines = [
        "# Python API",
        "",
        "These packages are public, and their pages list every public name.",
        "Import from `offbook` what it exports, and the rest from the package that has it.",
        "[Options](options.md) lists the options that most programs use, with their defaults.",
        "",
        "| package | content |",
        "|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def _exports(package: Package) -> str:
    """`offbook` exports names of other packages: each is documented there."""
    homes = {
        name: other.name
        for other in PACKAGES
        if other.name in ("offbook.runtime", "offbook.actors")
        for name in public_names(other)
    }
    rows = [
        f"| [`{name}`][{homes[name]}.{name}] | `{homes[name]}` |" for name in public_names(package)
    ]
    lines = [
        f"# `{package.name}`",
        "",
        "`from offbook import …` offers the names that most programs use.",
        "Each is documented with the package that has it.",
        "",
        "| name | package |",
        "|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def _page(package: Package) -> str:
    sections = defaultdict(list)
    for name, module in public_names(package).items():
        sections[module.split(".")[0]].append(name)
    lines = [f"# `{package.name}`", "", f"This package has {package.purpose}.", ""]
    for section, names in sorted(sections.items()):
        if section and len(sections) > 1:
            lines += [f"## {section}", ""]
        lines += [f"::: {package.name}.{name}\n" for name in names]
    return "\n".join(lines)
