"""Serialization of values: the content of checkpoints, journals and messages between processes.

The bytes are a header (three bytes that no msgpack data starts with, the version of the format, a
checksum), and msgpack. Only values of registered classes are written and made; names in bytes are
never imported or called. Damaged bytes raise `CheckpointError`. The bounds are checked before any
value is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from struct import pack as packed_numbers
from typing import Any, Final, TypeVar, overload
from zlib import crc32

from msgpack import ExtType, Packer, Timestamp, Unpacker, unpackb  # type: ignore[import-untyped]  # it has no stubs

from .. import errors
from ..data import chat, events, interrupt, outcome, posts
from ..errors import CheckpointError, ModelRetry, OffbookError, UsageError
from ..models import protocol
from .builtin import ERROR, MODEL, TYPE, VALUE_MARKS, VALUE_SCALARS, Encoder, Mark
from .collisions import FEW, checked_keys
from .refusals import DEEPEST, is_strange, refusal
from .registered import Registry

__all__ = ["RecordedError", "pack", "register_type", "unpack"]

_C = TypeVar("_C", bound=type)

_MAGIC: Final = b"\xc1ob"
_VERSION: Final = 1
_HEADER: Final = len(_MAGIC) + 1 + 4
_HEAD: Final = f">{len(_MAGIC)}sBI"
_LONGEST_CHAIN: Final = 32

# All bytes except those that start an array, a map or binary data: the number of the remaining
# bytes is at least the depth.
_OTHERS: Final = bytes((*range(0x80), *range(0xA0, 0xC4), *range(0xC7, 0xDC), *range(0xE0, 0x100)))
# Of those, the ones that start a list or a map of fewer than 16; and of larger ones.
_FEW: Final = bytes(range(0x80, 0xA0))
_LARGE: Final = bytes(range(0xDC, 0xE0))
# msgpack decodes this extension without calling the hook.
_TIMESTAMP: Final = re.compile(rb"\xd6\xff|\xd7\xff|\xc7\x0c\xff")


class RecordedError(OffbookError):
    """An exception that was read back, but whose class is not made from bytes.

    `type_name` and `text` describe the original.
    """

    def __init__(
        self,
        type_name: str,
        text: str = "",
        *,
        actor: str | None = None,
        message: object = None,
        run: str | None = None,
        agent: str | None = None,
    ) -> None:
        super().__init__(
            f"{type_name}: {text}" if text else type_name,
            actor=actor,
            message=message,
            run=run,
            agent=agent,
        )
        self.type_name = type_name
        self.text = text


_registry: Final = Registry()


@overload
def register_type(cls: _C, name: str | None = None) -> _C: ...


@overload
def register_type(cls: None = None, name: str | None = None) -> Callable[[_C], _C]: ...


def register_type(cls: type | None = None, name: str | None = None) -> object:
    """Allow a dataclass, enum, NamedTuple or pydantic model in checkpoints, under a name that stays
    the same when the class moves.

    As a call, `register_type(Cart, name="shop.Cart")`, or as a decorator, `@register_type` or
    `@register_type(name="shop.Cart")`.
    """
    if cls is None:
        return lambda decorated: register_type(decorated, name)
    _registry.add(cls, name)
    return cls


def pack(value: object, *, binaries: int = 0) -> bytes:
    """Serialize a value to bytes.

    Raises a `CheckpointError` that names the part which cannot be written, and how to fix it.

    `binaries`: the number of values in it that are known to be `bytes`. If it contains no others, a
    search is not needed.
    """
    try:
        try:
            body: bytes = Packer(default=_encode, strict_types=True, buf_size=1024).pack(value)
        except UnicodeEncodeError:  # half of a surrogate pair
            body = Packer(default=_encode, strict_types=True, unicode_errors="surrogatepass").pack(
                value
            )
        marks = _checked_marks(body)
        if odd := marks.translate(None, _FEW):  # otherwise there are only short lists and maps
            binary = odd.translate(None, _LARGE)
            if (len(binary) != binaries or _may_be_wide(body, odd)) and is_strange(
                (value,), _registry
            ):
                raise CheckpointError("it contains a value that would change when it is read back")  # noqa: TRY301 -- `refusal` finds out where
    except Exception as error:  # noqa: BLE001 -- getters and properties of users' classes may raise anything
        raise refusal(value, error, _registry) from (
            None if isinstance(error, CheckpointError) else error
        )
    return packed_numbers(_HEAD, _MAGIC, _VERSION, crc32(body)) + body


def unpack(data: bytes | bytearray | memoryview, *, opaque: bool = False) -> Any:
    """Deserialize the bytes of `pack()` completely, or raise CheckpointError.

    `opaque`: values of types that are not registered here become `OpaqueValue`s, for a process that
    forwards them.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        msg = f"unpack: data must be bytes from pack(), got a {type(data).__name__}."
        raise UsageError(msg)
    body = _without_header(bytes(data))
    try:
        pairs = _dict_of if _may_be_wide(body, _checked_marks(body)) else None
        reader = _Reader(opaque=opaque)
        value = unpackb(
            body,
            list_hook=reader.array,
            object_pairs_hook=pairs,
            ext_hook=reader.extension,
            strict_map_key=False,
            unicode_errors="surrogatepass",
        )
        reader.finish()
    except CheckpointError as error:
        msg = f"the stored data cannot be read: {error}"
        raise CheckpointError(msg) from error.__cause__
    except Exception as error:
        msg = f"the stored data cannot be read: {type(error).__name__}: {error}"
        raise CheckpointError(msg) from error
    return value


def _without_header(data: bytes) -> bytes:
    if not data:
        raise CheckpointError(
            "the stored data is empty: there are no bytes to read. Restore it from a backup."
        )
    if data[: len(_MAGIC)] != _MAGIC:
        raise CheckpointError(
            "the stored data was not written by pack(): it does not start with its header. Check "
            "that the key or file is the right one."
        )
    if len(data) > len(_MAGIC) and data[len(_MAGIC)] > _VERSION:
        msg = (
            "the stored data was written by a newer version of offbook: its format is "
            f"{data[len(_MAGIC)]}, "
            f"and this version reads up to {_VERSION}. Update offbook."
        )
        raise CheckpointError(msg)
    if len(data) <= _HEADER or data[len(_MAGIC)] != _VERSION:
        raise CheckpointError(
            "the bytes are damaged: the header is truncated, or has an invalid version. Restore "
            "them from a backup."
        )
    body = data[_HEADER:]
    if crc32(body) != int.from_bytes(data[len(_MAGIC) + 1 : _HEADER], "big"):
        raise CheckpointError(
            "the bytes are damaged: the checksum does not match. Restore them from a backup."
        )
    return body


# ---- reading


class _Reader:
    """Makes the values of one body.

    Each mark must be the first item of an array: the others are counted.
    """

    __slots__ = ("_opaque", "_open")

    def __init__(self, *, opaque: bool) -> None:
        self._open = 0
        self._opaque = opaque

    def extension(self, code: int, payload: bytes) -> object:
        if code == TYPE or code == MODEL:  # noqa: PLR1714, SIM109 -- half the time of a tuple, and this is once for each value
            self._open += 1
            return _registry.known.get((code, payload)) or _registry.mark(
                code, payload, opaque=self._opaque
            )
        mark = _MARKS.get(code)
        if mark is not None and not payload:
            self._open += 1
            return mark
        scalar = _SCALARS.get(code)
        if scalar is None:
            msg = (
                f"the stored data contains the unknown extension code {code}. It is damaged, or "
                "was written by a newer version: restore it, or update offbook."
            )
            raise CheckpointError(msg)
        return scalar(payload)

    def array(self, items: list[object]) -> object:
        if items and isinstance(items[0], Mark):
            self._open -= 1
            return items[0].build(items)
        return items

    def finish(self) -> None:
        if self._open:
            raise CheckpointError(
                "the stored data contains the start of a value where none can start. It is "
                "damaged: restore it from a backup."
            )


def _dict_of(pairs: list[tuple[object, object]]) -> dict[object, object]:
    if len(pairs) >= FEW:
        checked_keys([key for key, _ in pairs])
    return dict(pairs)


class _Level(int):
    """The depth of an array or map."""

    __slots__ = ()


def _may_be_wide(body: bytes, marks: bytes) -> bool:
    """Return whether there may be a map with at least as many keys as `collisions` checks."""
    return b"\xdf" in marks or (b"\xde" in marks and body.count(b"\xde") != body.count(b"\xde\x00"))


def _checked_marks(body: bytes) -> bytes:
    """Return all bytes that may start a container.

    Raises if the data is nested too deeply, before any value is made.

    Usually there are too few such bytes. If there are enough, or if there may be a timestamp, which
    msgpack decodes without calling the hook, the body is first decoded without making values.
    Before that, it is skipped as a whole, because msgpack allocates a long array before its items
    are read.
    """
    marks = body.translate(None, _OTHERS)
    if b"\xdc" in marks or b"\xdd" in marks:
        skipper = Unpacker(max_buffer_size=len(body))
        skipper.feed(body)
        skipper.skip()
    if len(marks) <= DEEPEST and (b"\xff" not in body or _TIMESTAMP.search(body) is None):
        return marks
    whole = unpackb(
        body,
        raw=True,
        list_hook=_level_of,
        object_pairs_hook=_level_of_pairs,
        ext_hook=_nothing,
        strict_map_key=False,
    )
    _level_of([whole])
    return marks


def _nothing(_code: int, _payload: bytes) -> None:
    return None


def _level_of(items: Iterable[Any]) -> _Level:
    deepest = 0
    for item in items:
        kind = type(item)
        if kind is _Level and item > deepest:
            deepest = item
        elif kind is Timestamp:
            raise CheckpointError(
                "contains the extension code -1, which is never written. The data is damaged: "
                "restore it from a backup."
            )
    if deepest > DEEPEST:
        msg = f"values must be nested at most {DEEPEST} levels deep, got a deeper one. Flatten it."
        raise CheckpointError(msg)
    return _Level(deepest + 1)


def _level_of_pairs(pairs: Iterable[tuple[object, object]]) -> _Level:
    return _level_of([item for pair in pairs for item in pair])


# ---- writing


def _encode(
    value: object, encoder_of: Callable[[type], Encoder | None] = _registry.encoders.get
) -> object:
    encoder = encoder_of(type(value))
    if encoder is not None:
        return encoder(value)
    if isinstance(value, BaseException):
        return _write_error(value)
    raise CheckpointError("not registered")  # `refusal` finds out where


# ---- exceptions, as data

_PLAIN: Final = (type(None), bool, int, float, str, bytes)
_WHERE: Final = frozenset(("run", "agent", "actor", "message"))

_OURS: Final[dict[str, type[OffbookError]]] = {
    f"offbook.{name}": cls
    for name in errors.__all__
    if isinstance(cls := getattr(errors, name), type) and issubclass(cls, OffbookError)
}
_BUILTIN: Final[dict[str, type[Exception]]] = {
    f"builtins.{cls.__name__}": cls
    for cls in (
        *(
            Exception,
            ArithmeticError,
            AssertionError,
            AttributeError,
            BufferError,
            EOFError,
            FloatingPointError,
            ImportError,
            IndexError,
            KeyError,
        ),
        *(
            LookupError,
            MemoryError,
            ModuleNotFoundError,
            NameError,
            NotImplementedError,
            OverflowError,
            RecursionError,
            ReferenceError,
            RuntimeError,
        ),
        *(
            StopAsyncIteration,
            StopIteration,
            TypeError,
            UnicodeError,
            ValueError,
            ZeroDivisionError,
        ),
        *(
            BlockingIOError,
            BrokenPipeError,
            ChildProcessError,
            ConnectionAbortedError,
            ConnectionError,
            ConnectionRefusedError,
            ConnectionResetError,
        ),
        *(
            FileExistsError,
            FileNotFoundError,
            InterruptedError,
            IsADirectoryError,
            NotADirectoryError,
            OSError,
            PermissionError,
            ProcessLookupError,
        ),
        TimeoutError,
    )
}
_NAMES: Final[dict[type, str]] = {cls: name for name, cls in (_OURS | _BUILTIN).items()}
_ERROR_EXT: Final = ExtType(ERROR, b"")


def _write_error(error: BaseException) -> list[object]:
    """Write the exception and the chain of its causes."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while (
        link is not None
        and len(chain) < _LONGEST_CHAIN
        and all(link is not known for known in chain)
    ):
        chain.append(link)
        link = link.__cause__
    return [_ERROR_EXT, *map(_write_link, chain)]


def _write_link(error: BaseException) -> list[object]:
    kind = type(error)
    name = (
        error.type_name
        if isinstance(error, RecordedError)
        else _NAMES.get(kind) or f"{kind.__module__}.{kind.__qualname__}"
    )
    args: list[object] = list(error.args)
    if isinstance(error, OSError) and kind in _NAMES and isinstance(error.filename, str):
        args.append(error.filename)
    kept = args if all(type(item) in _PLAIN for item in args) else None
    fields = None
    if isinstance(error, OffbookError):
        fields = {
            key: item
            for key, item in vars(error).items()
            if type(item) in _PLAIN
            and key not in ("type_name", "text", "path")
            and item is not None
        }
    return [name, _text_of(error), kept, fields]


def _text_of(error: BaseException) -> str:
    try:
        return error.text if isinstance(error, RecordedError) else str(error)
    except Exception as problem:  # noqa: BLE001 -- the user's __str__ may raise anything
        return f"(its text cannot be had: {type(problem).__name__})"


def _read_error(items: list[object]) -> BaseException:
    links = [_read_link(row) for row in items[1:]]
    if not links or len(links) > _LONGEST_CHAIN:
        raise CheckpointError(
            "a stored exception does not have the form of one. The data is damaged: restore it "
            "from a backup."
        )
    for error, cause in pairwise(links):
        error.__cause__ = cause
    return links[0]


def _read_link(row: object) -> Exception:
    if (
        not isinstance(row, list)
        or len(row) != 4  # noqa: PLR2004 -- as `_write_link` has it
        or type(row[0]) is not str
        or type(row[1]) is not str
    ):
        raise CheckpointError(
            "a stored exception does not have the form of one. The data is damaged: restore it "
            "from a backup."
        )
    name, text, args, fields = row
    well = (
        args is None or (type(args) is list and all(type(item) in _PLAIN for item in args))
    ) and (
        fields is None
        or (
            type(fields) is dict
            and all(type(key) is str and type(item) in _PLAIN for key, item in fields.items())
        )
    )
    if not well:
        msg = (
            f"the stored exception {name[:200]} must have only plain values as arguments. The "
            "data is damaged: restore it from a backup."
        )
        raise CheckpointError(msg)
    if name in _OURS:
        return _ours(_OURS[name], name, text, fields or {})
    if name in _BUILTIN:
        return _BUILTIN[name](*(args if args is not None else [text]))
    error = RecordedError(name, text)
    for key, item in (fields or {}).items():
        if key in _WHERE:
            setattr(error, key, item)
    return error


def _ours(cls: type[OffbookError], name: str, text: str, fields: dict[str, object]) -> OffbookError:
    error = ModelRetry(0, text) if cls is ModelRetry else cls(text)
    error.args = (text,)
    for key, item in fields.items():
        if key not in vars(error):
            msg = f"{name} has no field {key!r}, but the stored data has. Update offbook."
            raise CheckpointError(msg)
        setattr(error, key, item)
    return error


_MARKS: Final[dict[int, Mark]] = {**dict(VALUE_MARKS), ERROR: Mark(_read_error)}
_SCALARS: Final = dict(VALUE_SCALARS)

for _cls in (
    *(
        chat.TextPart,
        chat.ImagePart,
        chat.AudioPart,
        chat.FilePart,
        chat.ToolCall,
        chat.ToolCallDelta,
        chat.Usage,
        chat.Message,
        chat.MessageDelta,
    ),
    *(
        events.Exit,
        events.Interrupted,
        events.TransferToAgent,
        events.BreakLoop,
        events.CustomAction,
        events.AgentEvent,
        posts.Posted,
    ),
    *(
        interrupt.AddressStep,
        interrupt.InterruptContext,
        interrupt.Pending,
        interrupt.Answer,
        outcome.Outcome,
    ),
    *(protocol.ModelSettings, protocol.ToolSpec, protocol.OutputSchema),
):
    _registry.add(_cls, _cls.__name__, own=True)
