"""The JSON Schema of `report.json`, made from the types in `compare/report/model`.

`python -m compare.report.schema` prints it.  Records and their fields are described by their docstrings.
"""

import ast
import inspect
import itertools
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated

from compare.report.model.codec import Count, JsonObject, all_options, hinted_fields, is_required, key_of, plain_options
from compare.report.model.report import Report
from meshes.case import NUMBERS, Case
from meshes.choices import CHOICES
from meshes.devices.topology import Place
from meshes.models import Model
from meshes.process.command_line import print_json, run_command

_LEAVES: Mapping[object, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    types.NoneType: "null",
}


def report_schema(kind: type = Report) -> JsonObject:
    """The schema of a report, or of one kind of its records."""
    definitions: JsonObject = {}
    record = _record(kind, definitions)
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": f"{kind.__name__} of wirediff", **record, "$defs": definitions}


def _any_of(options: Sequence[object], definitions: JsonObject) -> JsonObject:
    """The schema of what is one of these types; its records are added to the definitions."""
    schemas = [_schema(option, definitions) for option in options]
    if len(schemas) == 1:
        return schemas[0]
    if any(schema.keys() & {"enum", "$ref"} for schema in schemas):
        return {"anyOf": schemas}
    kinds = [schema["type"] for schema in schemas]
    # A word about values of one type says nothing about those of another.
    merged = {word: value for schema in schemas for word, value in schema.items()}
    return merged | {"type": [kind for kind in kinds if kind != "integer" or "number" not in kinds]}


def _schema(hint: object, definitions: JsonObject) -> JsonObject:
    options, origin, args = all_options(hint), typing.get_origin(hint), typing.get_args(hint)
    if len(options) > 1:
        return _any_of(options, definitions)
    if hint is object:
        return {}
    if hint in _LEAVES:
        return {"type": _LEAVES[hint]}
    if origin is Annotated:
        words = {word: [*value] if isinstance(value, tuple) else value for word, value in args[1:]}
        return _schema(args[0], definitions) | words
    if origin is tuple:
        return {"type": "array", "items": _schema(args[0], definitions)}
    if origin is Mapping:
        keys = _schema(args[0], definitions).get("enum")
        required = {"required": keys} if keys else {}
        return {"type": "object", **required, "additionalProperties": _schema(args[1], definitions)}
    assert isinstance(hint, type), hint
    if hint.__name__ not in definitions:
        definitions[hint.__name__] = {}  # its place, before those of its fields
        definitions[hint.__name__] = _BORDERS.get(hint, _record)(hint, definitions)
    return {"$ref": f"#/$defs/{hint.__name__}"}


def _record(kind: type, definitions: JsonObject) -> JsonObject:
    """A record.  Where another's keys are among its own it is also that: always, or with the key that says so."""
    notes = _notes(kind)
    properties: JsonObject = {}
    others: JsonObject = {}
    required = []
    for part, hint in hinted_fields(kind, extras=True):
        name, is_optional = key_of(part), "optional" in part.metadata
        schema = _any_of(plain_options(hint) if is_optional else (hint,), definitions)
        if "inline" not in part.metadata:
            note = _line(notes.get(part.name, ""), none="absent" if is_optional else "null")
            properties[name] = schema | ({"description": note} if note else {})
            required += [name] if is_required(part) else []
        elif is_required(part):
            others["allOf"] = [schema]
        else:
            others["dependentSchemas"] = {name: schema}
    about = {"type": "object", "description": _line(kind.__doc__ or "")}
    return {**about, "required": required, "properties": properties, **others}


@cache
def _notes(kind: type) -> Mapping[str, str]:
    """Field -> the string below it in the source."""
    notes = {}
    for base in reversed(inspect.getmro(kind)[:-1]):
        (definition,) = ast.parse(inspect.getsource(base)).body
        assert isinstance(definition, ast.ClassDef)
        for part, after in itertools.pairwise(definition.body):
            if isinstance(part, ast.AnnAssign) and isinstance(after, ast.Expr):
                notes[ast.unparse(part.target)] = ast.literal_eval(after.value)
    return notes


def _line(text: str, *, none: str = "null") -> str:
    """A docstring in one line, of JSON instead of Python."""
    return re.sub(r"`?\bNone\b`?", none, " ".join(text.split()))


def _case(kind: type, definitions: JsonObject) -> JsonObject:
    """As `Case.to_dict` writes it; earlier versions did not write all of it."""
    size: JsonObject = {"type": "integer", "minimum": 1}
    properties: JsonObject = {
        "name": {"type": "string"},
        "mesh": _object({"name": {"type": "string"}, "axes": {"type": "object", "additionalProperties": size}}),
        "topology": {"type": "string"},
        "order": _schema(tuple[str, ...], definitions),
        "rules": _schema(Mapping[str, str | None], definitions),
        "model": _schema(Model, definitions),
        **dict.fromkeys(NUMBERS, size),
        "capacity": _schema(float | None, definitions),
        **{name: {"enum": [*words]} for name, words in CHOICES.items()},
        "phases": {"type": "array", "items": {"enum": [*CHOICES["phases"]]}},
        "variants": _schema(tuple[str, ...], definitions),
    }
    return _object(properties, optional=("room", "capacity", "variants"))


def _place(kind: type, definitions: JsonObject) -> JsonObject:
    return _object({name: _schema(Count, definitions) for name in Place._fields})


def _object(properties: JsonObject, *, optional: Sequence[str] = ()) -> JsonObject:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": properties}


_BORDERS: Mapping[type, Callable[[type, JsonObject], JsonObject]] = {Case: _case, Place: _place}


def main(argv: Sequence[str] | None = None) -> int:
    print_json(report_schema())
    return 0


if __name__ == "__main__":
    run_command(main)
