"""Converts an MCP server's result to the result of a tool.

The content is untrusted: it is shown unchanged and never executed.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from ...runtime.data.chat import AudioPart, FilePart, ImagePart, Part, TextPart
from ...runtime.errors import ToolError

__all__ = ["returned"]


def returned(tool_name: str, result: Any) -> str | list[Part]:
    """Return the text or the parts. Raise `ToolError` if the server reports a failure."""
    parts = [_part(tool_name, one) for one in result.content]
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if result.is_error:
        raise ToolError(
            "\n".join(texts) or f"{tool_name} has failed, and its server does not say why."
        )
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(texts) if len(texts) == len(parts) else parts


def _part(tool_name: str, one: Any) -> Part:
    match one.type:
        case "text":
            return TextPart(one.text)
        case "image":
            return ImagePart(data=_bytes(tool_name, one.data), media_type=one.mime_type)
        case "audio":
            return AudioPart(data=_bytes(tool_name, one.data), media_type=one.mime_type)
        case "resource_link":
            return TextPart(f"{one.title or one.name}: {one.uri}")
        case "resource":
            resource = one.resource
            text = getattr(resource, "text", None)
            if text is not None:
                return TextPart(text)
            name = str(resource.uri).rpartition("/")[2] or None
            return FilePart(
                data=_bytes(tool_name, resource.blob),
                media_type=resource.mime_type or "application/octet-stream",
                name=name,
            )
        case kind:
            return TextPart(f"[{kind}]")


def _bytes(tool_name: str, data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        msg = (
            f"{tool_name} returned data that is not valid base64. The MCP server must encode "
            "images, audio and blobs as base64."
        )
        raise ToolError(msg) from error
