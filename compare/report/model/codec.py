"""Frozen dataclasses to JSON and back, by their fields and type hints.  The only file of the report that uses `Any`.

A field is a key of the same name, in the same order.  A field with a default is one that reports of earlier versions
lack.  Keys without a field come from later versions, and are ignored; so are words that `one_of` does not name.

It is our own because `msgspec` has no record inside another's keys, takes `Case` and `Place` for what they are in
Python, reads 3 as 3.0, and does not say which key of a mapping is wrong.  `compare.report.schema` reads the same hints.
"""

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from meshes.case import Case
from meshes.devices.topology import Place

if TYPE_CHECKING:
    Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
    """A JSON value: the type of parts of a report that are repeated as they were read."""
else:
    Json = object

JsonObject = dict[str, Any]
"""A JSON object as `json.loads` gives it."""

Count = Annotated[int, ("minimum", 0)]
"""A number of things, an index or bytes.  Pairs after a type are words of JSON Schema, for the schema alone."""

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
"""Type hint -> the types that JSON may have there; an int is a valid float."""


class ReportError(ValueError):
    """JSON that is not a report; the message says where, what was read, and what is expected."""


class _RefusedError(Exception):
    """What is wrong with a value, and the keys that lead to it, innermost first."""

    def __init__(self, why: str) -> None:
        self.why = why
        self.path: list[str] = []


def one_of(*words: str) -> tuple[str, tuple[str, ...]]:
    """For `Annotated`: the words that a string is one of; as the key of a mapping, which has each of them."""
    return "enum", words


def key(name: str) -> Mapping[str, object]:
    """Metadata of a field whose key is not its name."""
    return {"key": name}


def inline(key_name: str, *, last: Sequence[str] = ()) -> Mapping[str, object]:
    """Metadata of a field whose record's keys are merged into those of the record around it.

    key_name: the key that is present if the record is.  last: its keys that come after all those of the outer record.
    """
    return {"inline": last, "key": key_name, "optional": True}


def encode(record: object) -> JsonObject:
    """A record as plain JSON values, copied: changing them does not change the record."""
    return typing.cast(JsonObject, _encoder(typing.cast(Any, type(record)))(record))


def copy_fields(record: object, kind: type[T], /, **others: Any) -> T:
    """A record of another kind: these fields, and from `record` all others of which it has a value of that name."""
    names = [part.name for part in fields(typing.cast(Any, kind)) if part.name not in others]
    return kind(**{name: getattr(record, name) for name in names if hasattr(record, name)}, **others)


def decode(kind: type[T], value: object) -> T:
    """A record from JSON values.  Raises `ReportError`, one line, where a key is missing or has another type."""
    try:
        return typing.cast(T, _decoder(typing.cast(Any, kind))(value))
    except _RefusedError as refused:
        path = ".".join(reversed(refused.path)) or "it"
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise ReportError(f"this is not {article} {kind.__name__} of wirediff: {path} {refused.why}") from None


def _pairs(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise _RefusedError(f"is {value!r:.40}, not an object")
    return value.items()


def _place(value: Any) -> Place:
    values = dict(_pairs(value))
    if set(values) != set(Place._fields):
        raise _RefusedError(f"has {', '.join(values) or 'nothing'}, not {', '.join(Place._fields)}")
    return Place(**values)


_BORDERS: dict[Any, tuple[Code, Code]] = {
    Case: (Case.to_dict, Case.from_dict),
    Place: (Place._asdict, _place),
}
"""Types with a JSON form of their own: (encoder, decoder)."""


@cache
def _encoder(hint: Any) -> Code:
    """The function that encodes a value of this type; `_same` where it is a JSON value already."""
    options = plain_options(hint)
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
    parts = [(part.name, key_of(part), _encoder(hint), part.metadata) for part, hint in hinted_fields(kind)]
    last = [key_name for *_, metadata in parts for key_name in metadata.get("inline", ())]

    def code(record: Any) -> JsonObject:
        encoded: JsonObject = {}
        for name, key_name, inner, metadata in parts:
            value = getattr(record, name)
            if value is None and "optional" in metadata:
                continue
            if "inline" in metadata:
                encoded |= inner(value)
            else:
                encoded[key_name] = inner(value)
        return encoded | {key_name: encoded.pop(key_name) for key_name in last if key_name in encoded}

    return code


@cache
def _decoder(hint: Any) -> Code:
    """The function that decodes and checks a JSON value of this type."""
    options = plain_options(hint)
    optional = types.NoneType in all_options(hint)
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
        decoded, name, pairs = {}, "", _pairs(value)
        try:
            for name, inner in pairs:
                decoded[name] = item(inner)
        except _RefusedError as refused:
            refused.path.append(name)
            raise
        return decoded

    return code


def _record_decoder(kind: Any) -> Code:
    parts = [
        (part.name, key_of(part), _decoder(hint), is_required(part), "inline" in part.metadata)
        for part, hint in hinted_fields(kind)
    ]

    def code(value: Any) -> Any:
        _pairs(value)
        values, key_name = {}, ""
        try:
            for name, key_name, inner, required, inline in parts:
                if inline and key_name in value:
                    key_name = ""
                    values[name] = inner(value)
                elif key_name in value:
                    values[name] = inner(value[key_name])
                elif required:
                    raise _RefusedError("is not there")
        except _RefusedError as refused:
            refused.path += [key_name] if key_name else []
            raise
        return kind(**values)

    return code


def hinted_fields(kind: Any, *, extras: bool = False) -> list[tuple["Field[Any]", Any]]:
    """A record's fields and their type hints; extras: with the words of JSON Schema."""
    hints = typing.get_type_hints(kind, include_extras=extras)
    return [(part, hints[part.name]) for part in fields(kind)]


def key_of(part: "Field[Any]") -> str:
    """A field's key; of an inlined record, the key that is present if the record is."""
    return str(part.metadata.get("key", part.name))


def is_required(part: "Field[Any]") -> bool:
    return part.default is MISSING and part.default_factory is MISSING


def all_options(hint: Any) -> tuple[Any, ...]:
    """The types that a hint allows."""
    return typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)


def plain_options(hint: Any) -> tuple[Any, ...]:
    """The same without `None`."""
    return tuple(option for option in all_options(hint) if option is not types.NoneType)


def _named(allowed: frozenset[type]) -> str:
    return " or ".join(sorted("null" if kind is types.NoneType else kind.__name__ for kind in allowed))


def _same(value: Any) -> Any:
    return value
