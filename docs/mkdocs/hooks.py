"""What MkDocs does beside its own for these pages: files of the repository become pages, and the reference is made of what the packages offer.

A link to a file that is no page loses its address. A page that would load something from another server is an error.
"""

import ast
import os
import re
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# Files of the repository that are pages, by the address that each has here.
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "tests.md": "tests/README.md",
    "benchmarks.md": "benchmarks/README.md",
}
# The packages whose names are public, by the page that documents them.
PACKAGES = {
    "reference/actors.md": ("actors", "understudy.actors", "Agents: `understudy.actors`"),
    "reference/runtime.md": ("runtime", "understudy.runtime", "Running: `understudy.runtime`"),
    "reference/testing.md": ("runtime/testing", "understudy.runtime.testing", "Testing: `understudy.runtime.testing`"),
    "reference/a2a.md": ("runtime/a2a", "understudy.runtime.a2a", "Agent2Agent: `understudy.runtime.a2a`"),
}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|`[^`]*`)*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=[\"']?(?:https?:)?//[^>]*>|<link(?![^>]*canonical)[^>]*\shref=[\"']?(?:https?:)?//[^>]*>")


def on_startup(**_: Any) -> None:
    """Lay the source out as it is imported, for mkdocstrings: it reads files, whatever is installed."""
    packages = ROOT / "build" / "docs" / "understudy"
    packages.mkdir(parents=True, exist_ok=True)
    for room in ("actors", "runtime"):
        if not (packages / room).is_symlink():
            (packages / room).symlink_to(ROOT / room)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the navigation what is expected and not there yet."""
    config.nav = pruned(config.nav, set(config.extra.get("expected", ())))
    return config


def pruned(nav: Any, expected: set[str]) -> Any:
    if isinstance(nav, list):
        return [kept for kept in (pruned(item, expected) for item in nav) if kept]
    if isinstance(nav, dict):
        return {title: kept for title, kept in ((title, pruned(item, expected)) for title, item in nav.items()) if kept}
    return None if nav in expected and not (ROOT / "docs" / nav).exists() else nav


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for uri, source in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    for uri, (folder, package, title) in PACKAGES.items():
        files.append(File.generated(config, uri, content=reference(ROOT / folder, package, title)))
    return files


def reference(folder: Path, package: str, title: str) -> str:
    """A page with each public name of a package, under the room that has it."""
    tree = ast.parse((folder / "__init__.py").read_text())
    origin = {alias.asname or alias.name: node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    (listed,) = (node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    rooms = defaultdict(list)
    for name in ast.literal_eval(listed):
        if name in origin:
            rooms[origin[name].split(".")[0]].append(name)
    lines = [f"# {title}", "", "Each name is imported from this package, wherever it is made. All options with their defaults: [options](options.md).", ""]
    for room, names in sorted(rooms.items()):
        lines += [f"## {room}", "", *(f"::: {package}.{name}\n" for name in names)]
    return "\n".join(lines)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead each link to the page that a file has become; what is no page loses its address."""
    uri = page.file.src_uri
    source = PurePosixPath(PAGES.get(uri, f"docs/{uri}"))

    def lead(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        if not target or "://" in target:
            return link[0]
        path = os.path.normpath(source.parent / target)
        there = next((page for page, file in PAGES.items() if file == path), path.removeprefix("docs/") if path.startswith("docs/") else None)
        if there is None and (ROOT / path).exists():
            return text
        return f"[{text}]({os.path.relpath(there or path, PurePosixPath(uri).parent)}{anchor})"

    parts, end = [], 0
    for block in CODE.finditer(markdown):
        parts += [LINK.sub(lead, markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(lead, markdown[end:])])


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    outside = LOADED.findall(output)
    if outside:
        msg = f"{page.file.src_uri} would load from another server: {outside[0]}"
        raise PluginError(msg)
    return output
