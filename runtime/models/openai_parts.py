"""Images, audio and files in the forms of OpenAI's two APIs, and the schemas of tools.

Nothing is ever fetched: an address is sent as it is, or refused.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypedDict, cast

from ..data.chat import AudioPart, FilePart, ImagePart, Part, TextPart
from ..errors import UsageError
from .protocol import ModelSettings

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionContentPartParam
    from openai.types.chat.chat_completion_content_part_input_audio_param import InputAudio
    from openai.types.responses import ResponseInputContentParam

__all__ = [
    "PLAIN_CHOICES",
    "SharedArguments",
    "add_shared",
    "chat_part",
    "is_strict",
    "responses_part",
]

_AUDIO_FORMATS: Final[Mapping[str, Literal["wav", "mp3"]]] = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/vnd.wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
PLAIN_CHOICES: Final[Mapping[str, Literal["auto", "none", "required"]]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
}
"""Tool choices that are sent unchanged. Any other one is the name of a tool."""


def chat_part(part: Part) -> ChatCompletionContentPartParam:
    """Convert a part for chat completions."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        return {
            "type": "image_url",
            "image_url": {"url": _url(part), "detail": part.detail}
            if part.detail
            else {"url": _url(part)},
        }
    if isinstance(part, AudioPart):
        return {"type": "input_audio", "input_audio": _audio(part)}
    return {"type": "file", "file": {"filename": part.name or "file", "file_data": _own_data(part)}}


def responses_part(part: Part) -> ResponseInputContentParam:
    """Convert a part for the Responses API."""
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, ImagePart):
        return {"type": "input_image", "image_url": _url(part), "detail": part.detail or "auto"}
    if isinstance(part, AudioPart):
        # The API accepts it, though the client's types do not include it.
        return cast(
            "ResponseInputContentParam", {"type": "input_audio", "input_audio": _audio(part)}
        )
    if part.url is not None and not part.url.startswith("data:"):
        return {"type": "input_file", "file_url": part.url}
    return {"type": "input_file", "filename": part.name or "file", "file_data": _url(part)}


def _url(part: ImagePart | AudioPart | FilePart) -> str:
    return (
        part.url
        if part.url is not None
        else f"data:{part.media_type};base64,{base64.b64encode(part.data or b'').decode()}"
    )


def _own_data(part: AudioPart | FilePart) -> str:
    url = _url(part)
    if not url.startswith("data:"):
        msg = (
            f"{type(part).__name__}(url={url!r}): this API does not accept a url= for this kind "
            "of part. Download it, and pass data= and media_type=."
        )
        raise UsageError(msg)
    return url


def _audio(part: AudioPart) -> InputAudio:
    head, _, data = _own_data(part).partition(",")
    media_type = head.removeprefix("data:").partition(";")[0].lower()
    if media_type not in _AUDIO_FORMATS or not head.endswith(";base64"):
        msg = (
            f"AudioPart: this API does not accept {media_type!r}. Pass base64 data of "
            f"{' or '.join(sorted(set(_AUDIO_FORMATS)))}."
        )
        raise UsageError(msg)
    return {"data": data, "format": _AUDIO_FORMATS[media_type]}


def is_strict(schema: object) -> bool:
    """Return whether a provider would accept the schema as strict.

    Each object in it must require all its properties, and allow no others.
    """
    if isinstance(schema, list | tuple):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties") or {}
        if schema.get("additionalProperties") is not False or set(
            schema.get("required") or ()
        ) != set(properties):
            return False
        inner: list[object] = [*properties.values()]
    else:
        inner = []
    inner += [
        schema[key] for key in ("items", "anyOf", "allOf", "oneOf", "prefixItems") if key in schema
    ]
    for key in ("$defs", "definitions"):
        inner += (schema.get(key) or {}).values()
    return all(map(is_strict, inner))


class SharedArguments(TypedDict, total=False):
    """The arguments with the same names in both APIs."""

    temperature: float | None
    top_p: float | None
    timeout: float | None
    extra_body: dict[str, object]


def add_shared(arguments: SharedArguments, settings: ModelSettings) -> None:
    """Add the settings that have the same names in both APIs."""
    arguments["temperature"] = settings.temperature
    arguments["top_p"] = settings.top_p
    arguments["timeout"] = settings.timeout
    if settings.extra:
        arguments["extra_body"] = dict(settings.extra)
