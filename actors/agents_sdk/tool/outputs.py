"""What a tool returns beside text, and where a tool comes from.

Owns: text, images and files as tool outputs, and how a value becomes what the model is given. It must never look at a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Literal, NotRequired

from pydantic import BaseModel, TypeAdapter, ValidationError, model_validator
from typing_extensions import TypedDict

__all__ = [
    "ToolOrigin",
    "ToolOriginType",
    "ToolOutputFileContent",
    "ToolOutputFileContentDict",
    "ToolOutputImage",
    "ToolOutputImageDict",
    "ToolOutputText",
    "ToolOutputTextDict",
    "structured",
]


class ToolOutputText(BaseModel):
    """A text."""

    type: Literal["text"] = "text"
    text: str


class ToolOutputImage(BaseModel):
    """An image: by its URL, which may have the data in it, or by the id of an uploaded file."""

    type: Literal["image"] = "image"
    image_url: str | None = None
    file_id: str | None = None
    detail: Literal["low", "high", "auto"] | None = None

    @model_validator(mode="after")
    def check_at_least_one_required_field(self) -> ToolOutputImage:
        if self.image_url is None and self.file_id is None:
            msg = "At least one of image_url or file_id must be provided"
            raise ValueError(msg)
        return self


class ToolOutputFileContent(BaseModel):
    """A file: its data as base64, its URL, or the id of an uploaded one."""

    type: Literal["file"] = "file"
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None

    @model_validator(mode="after")
    def check_at_least_one_required_field(self) -> ToolOutputFileContent:
        if self.file_data is None and self.file_url is None and self.file_id is None:
            msg = "At least one of file_data, file_url, or file_id must be provided"
            raise ValueError(msg)
        return self


class ToolOutputTextDict(TypedDict, total=False):
    """A text, as a dict."""

    type: Literal["text"]
    text: str


class ToolOutputImageDict(TypedDict, total=False):
    """An image, as a dict."""

    type: Literal["image"]
    image_url: NotRequired[str]
    file_id: NotRequired[str]
    detail: NotRequired[Literal["low", "high", "auto"]]


class ToolOutputFileContentDict(TypedDict, total=False):
    """A file, as a dict."""

    type: Literal["file"]
    file_data: NotRequired[str]
    file_url: NotRequired[str]
    file_id: NotRequired[str]
    filename: NotRequired[str]


_KINDS: Final[Mapping[str, Any]] = MappingProxyType({"text": ToolOutputText, "image": ToolOutputImage, "file": ToolOutputFileContent})
_NAMES: Final[Mapping[str, str]] = MappingProxyType({"text": "input_text", "image": "input_image", "file": "input_file"})


def structured(output: Any) -> list[dict[str, Any]] | None:
    """The output as content of the Responses API; None if it is none of these, or holds something else."""
    items = output if isinstance(output, list | tuple) else (output,)
    found = [_content(item) for item in items]
    return [one for one in found if one is not None] if found and None not in found else None


def _content(value: Any) -> dict[str, Any] | None:
    if isinstance(value, Mapping):
        kind = _KINDS.get(str(value.get("type")))
        if kind is None:
            return None
        try:
            value = TypeAdapter(kind).validate_python(dict(value))
        except ValidationError:
            return None
    if not isinstance(value, ToolOutputText | ToolOutputImage | ToolOutputFileContent):
        return None
    return {"type": _NAMES[value.type], **value.model_dump(exclude_none=True, exclude={"type"})}


class ToolOriginType(str, Enum):
    """Where a function tool comes from."""

    FUNCTION = "function"
    MCP = "mcp"
    AGENT_AS_TOOL = "agent_as_tool"


@dataclass(frozen=True)
class ToolOrigin:
    """Where a function tool comes from, with the names that belong to it."""

    type: ToolOriginType
    mcp_server_name: str | None = None
    agent_name: str | None = None
    agent_tool_name: str | None = None

    def to_json_dict(self) -> dict[str, str]:
        """The same as JSON."""
        named = {name: getattr(self, name) for name in ("mcp_server_name", "agent_name", "agent_tool_name")}
        return {"type": self.type.value, **{name: value for name, value in named.items() if value is not None}}

    @classmethod
    def from_json_dict(cls, data: Any) -> ToolOrigin | None:
        """The origin of that JSON; None if it is none."""
        kinds = {kind.value: kind for kind in ToolOriginType}
        if not isinstance(data, Mapping) or data.get("type") not in kinds:
            return None
        named = {name: data.get(name) for name in ("mcp_server_name", "agent_name", "agent_tool_name")}
        return cls(kinds[data["type"]], **{name: value for name, value in named.items() if isinstance(value, str)})
