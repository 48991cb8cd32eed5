"""Frozen dataclasses to JSON and back, by their fields and type hints.  The only file of the report that knows `Any`.

A field is a key of the same name, in the same order.  A field with a default is one that reports of earlier versions
lack.  Keys that no field names are those of later versions, and are left out.
"""

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from meshes.case import Case
from meshes.devices.topology import Place

if TYPE_CHECKING:
    Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
    """What JSON can say: of parts of a report that are repeated as they were read."""
else:
    Json = object

JsonObject = dict[str, Any]
"""A JSON object as `json.loads` gives it."""

OPTIONAL: Mapping[str, object] = {"optional": True}
"""Metadata of a field whose key is absent where it is `None`."""

Code = Callable[[Any], Any]
T = TypeVar("T")

_LEAVES: dict[Any, frozenset[type]] = {
    str: frozenset({str}),
    bool: frozenset({bool}),
    int: frozenset({int}),
    float: frozenset({int, float}),
}
"""What JSON may have where a hint says this; a whole number is a number too."""


class ReportError(ValueError):
    """JSON that is no report: where, what was read, and what would be right."""


class _RefusedError(Exception):
    """What is wrong with a value, and the keys that lead to it, innermost first."""

    def __init__(self, why: str) -> None:
        self.why = why
        self.path: list[str] = []


def key(name: str) -> Mapping[str, object]:
    """Metadata of a field whose key is not its name."""
    return {"key": name}


def inline(at: str, *, last: Sequence[str] = ()) -> Mapping[str, object]:
    """Metadata of a field whose record's keys stand among those of the record around it.

    at: the key that is there where the record is.  last: its keys that come after all those around it.
    """
    return {"inline": last, "key": at, "optional": True}


def encode(record: object) -> JsonObject:
    """A record as plain values of its own: changing them does not change the record."""
    return typing.cast(JsonObject, _encoder(typing.cast(Any, type(record)))(record))


def decode(kind: type[T], value: object) -> T:
    """The reverse.  Raises `ReportError`, one line, where a key is missing or has a value of another type."""
    try:
        return typing.cast(T, _decoder(typing.cast(Any, kind))(value))
    except _RefusedError as refused:
        at = ".".join(reversed(refused.path)) or "it"
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise ReportError(f"this is not {article} {kind.__name__} of wirediff: {at} {refused.why}") from None


def _pairs(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise _RefusedError(f"is {value!r:.40}, not an object")
    return value.items()


def _place(value: Any) -> Place:
    found = dict(_pairs(value))
    if set(found) != set(Place._fields):
        raise _RefusedError(f"has {', '.join(found) or 'nothing'}, not {', '.join(Place._fields)}")
    return Place(**found)


_BORDERS: dict[Any, tuple[Code, Code]] = {
    Case: (Case.to_dict, Case.from_dict),
    Place: (Place._asdict, _place),
}
"""Types with a JSON form of their own: how they are written, and how read."""


@cache
def _encoder(hint: Any) -> Code:
    """How a value of this type becomes plain; `_same` where it is."""
    options = _options(hint)
    if len(options) != 1:
        return _same
    origin, args = typing.get_origin(options[0]), typing.get_args(options[0])
    if options[0] in _BORDERS:
        code = _BORDERS[options[0]][0]
    elif is_dataclass(options[0]):
        code = _record_encoder(options[0])
    elif origin is tuple:
        code = _list_encoder(_encoder(args[0]))
    elif origin is not None and issubclass(origin, Mapping):
        code = _dict_encoder(_encoder(args[1]))
    else:
        return _same
    return code if options[0] is hint else lambda value: None if value is None else code(value)


def _list_encoder(code: Code) -> Code:
    return list if code is _same else lambda value: [code(item) for item in value]


def _dict_encoder(code: Code) -> Code:
    return dict if code is _same else lambda value: {name: code(item) for name, item in value.items()}


def _record_encoder(kind: Any) -> Code:
    parts = [(part.name, _key(part), _encoder(hint), part.metadata) for part, hint in _fields(kind)]
    last = [at for *_, metadata in parts for at in metadata.get("inline", ())]

    def code(record: Any) -> JsonObject:
        found: JsonObject = {}
        for name, at, inner, metadata in parts:
            value = getattr(record, name)
            if value is None and "optional" in metadata:
                continue
            if "inline" in metadata:
                found |= inner(value)
            else:
                found[at] = inner(value)
        return found | {at: found.pop(at) for at in last if at in found}

    return code


@cache
def _decoder(hint: Any) -> Code:
    """How a plain value becomes one of this type, checked."""
    options = _options(hint)
    optional = len(options) < len(typing.get_args(hint) or (hint,)) if _is_union(hint) else False
    if all(option in _LEAVES for option in options):
        allowed = frozenset[type]().union(*(_LEAVES[option] for option in options))
        return _leaf_decoder(allowed | {types.NoneType} if optional else allowed)
    if len(options) != 1 or options[0] is object:
        return _same
    origin, args = typing.get_origin(options[0]), typing.get_args(options[0])
    if options[0] in _BORDERS:
        code = _BORDERS[options[0]][1]
    elif is_dataclass(options[0]):
        code = _record_decoder(options[0])
    elif origin is tuple:
        code = _tuple_decoder(args[0])
    else:
        code = _mapping_decoder(args[1])
    return (lambda value: None if value is None else code(value)) if optional else code


def _leaf_decoder(allowed: frozenset[type]) -> Code:
    def code(value: Any) -> Any:
        if type(value) not in allowed:
            raise _RefusedError(f"is {value!r:.40}, not {_named(allowed)}")
        return value

    return code


def _tuple_decoder(hint: Any) -> Code:
    item = _decoder(hint)

    def code(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise _RefusedError(f"is {value!r:.40}, not a list")
        return tuple(map(item, value))

    return code


def _mapping_decoder(hint: Any) -> Code:
    item = _decoder(hint)

    def code(value: Any) -> dict[str, Any]:
        found, name, pairs = {}, "", _pairs(value)
        try:
            for name, inner in pairs:
                found[name] = item(inner)
        except _RefusedError as refused:
            refused.path.append(name)
            raise
        return found

    return code


def _record_decoder(kind: Any) -> Code:
    parts = [
        (part.name, _key(part), _decoder(hint), _default(part), "inline" in part.metadata)
        for part, hint in _fields(kind)
    ]

    def code(value: Any) -> Any:
        _pairs(value)
        found, at = {}, ""
        try:
            for name, at, inner, default, inline in parts:
                if inline and at in value:
                    at = ""
                    found[name] = inner(value)
                elif at in value:
                    found[name] = inner(value[at])
                elif default is MISSING:
                    raise _RefusedError("is not there")
        except _RefusedError as refused:
            refused.path += [at] if at else []
            raise
        return kind(**found)

    return code


def _fields(kind: Any) -> list[tuple["Field[Any]", Any]]:
    hints = typing.get_type_hints(kind)
    return [(part, hints[part.name]) for part in fields(kind)]


def _key(part: "Field[Any]") -> str:
    """A field's key; of an inlined record the one that is there where the record is."""
    return str(part.metadata.get("key", part.name))


def _default(part: "Field[Any]") -> Any:
    return part.default if part.default_factory is MISSING else part.default_factory


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (types.UnionType, typing.Union)


def _options(hint: Any) -> tuple[Any, ...]:
    """The types that a hint allows, without `None`."""
    return tuple(a for a in typing.get_args(hint) if a is not types.NoneType) if _is_union(hint) else (hint,)


def _named(allowed: frozenset[type]) -> str:
    return " or ".join(sorted("null" if kind is types.NoneType else kind.__name__ for kind in allowed))


def _same(value: Any) -> Any:
    return value
