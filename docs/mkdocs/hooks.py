"""Hooks of MkDocs: files of the repository become pages, and the Python API is generated.

A link to a file that is not a page loses its address.
A page that would load something from another server is an error.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

import api_pages
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
    "security.md": "SECURITY.md",
}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|`[^`]*`)*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
IMAGE = re.compile(r"(!\[[^\]]*\]\()([^)\s:]+)(\))")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]*\ssrc=[\"']?(?:https?:)?//[^>]*>|<link(?![^>]*canonical)[^>]*\shref=[\"']?(?:https?:)?//[^>]*>"
)


def on_startup(**_: Any) -> None:
    """Lay the source out as it is imported: mkdocstrings reads files."""
    packages = ROOT / "build" / "docs" / "offbook"
    packages.mkdir(parents=True, exist_ok=True)
    api = {path.name: path for path in (ROOT / "api").glob("*.py")}
    for name, source in {"actors": ROOT / "actors", "runtime": ROOT / "runtime", **api}.items():
        if not (packages / name).is_symlink():
            (packages / name).symlink_to(source)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for uri, source in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    for uri, content in api_pages.pages().items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead each link to the page that a file has become."""
    uri = page.file.src_uri
    source = PurePosixPath(PAGES.get(uri, f"docs/{uri}"))

    def lead(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        if not target or "://" in target:
            return link[0]
        path = os.path.normpath(source.parent / target)
        there = next(
            (page for page, file in PAGES.items() if file == path),
            path.removeprefix("docs/") if path.startswith("docs/") else None,
        )
        if there is None and (ROOT / path).exists():
            return text
        return f"[{text}]({os.path.relpath(there or path, PurePosixPath(uri).parent)}{anchor})"

    def show(image: re.Match[str]) -> str:
        path = os.path.normpath(source.parent / image[2]).removeprefix("docs/")
        return f"{image[1]}{os.path.relpath(path, PurePosixPath(uri).parent)}{image[3]}"

    def adapted(text: str) -> str:
        return IMAGE.sub(show, LINK.sub(lead, text))

    parts, end = [], 0
    for block in CODE.finditer(markdown):
        parts += [adapted(markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, adapted(markdown[end:])])


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    outside = LOADED.findall(output)
    if outside:
        msg = f"{page.file.src_uri} would load from another server: {outside[0]}"
        raise PluginError(msg)
    return output
