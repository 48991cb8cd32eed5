"""Classes of protobuf messages from a compact table of their fields, built at run time: no generated code, no protoc.

A message's line holds `name=number:type` for a single field and `name=number*type` for a list.  A type is one
of SCALARS or another message of the table.  Enums are read as int32, and a map is a list of entries with `key=1` and
`value=2`: as on the wire.
"""

import re
from collections.abc import Mapping
from typing import Any, Protocol

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
    "sint32": _Field.TYPE_SINT32,
    "sint64": _Field.TYPE_SINT64,
    "fixed32": _Field.TYPE_FIXED32,
    "fixed64": _Field.TYPE_FIXED64,
    "sfixed32": _Field.TYPE_SFIXED32,
    "sfixed64": _Field.TYPE_SFIXED64,
    "float": _Field.TYPE_FLOAT,
    "double": _Field.TYPE_DOUBLE,
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
}
_NO_ONEOFS: Mapping[str, Mapping[str, str]] = {}
_FIELD = re.compile(r"(\w+)=(\d+)([*:])(\w+)")


class Message(Protocol):
    """A message of such a class: each field of its line in the table is an attribute, which no type checker knows."""

    def __getattr__(self, field: str) -> Any: ...


class MessageClass(Protocol):
    """Such a class."""

    def __call__(self, **fields: object) -> Message: ...
    def FromString(self, data: bytes, /) -> Message: ...  # noqa: N802  (protobuf's name)


def classes(
    package: str, messages: Mapping[str, str], *, oneofs: Mapping[str, Mapping[str, str]] = _NO_ONEOFS
) -> dict[str, MessageClass]:
    """The class of each message, by its name in `messages`.

    oneofs: for a message, the name of a oneof by each field that is in it.  As in proto3, a number that is not there
    is 0, a string must be UTF-8 (else `DecodeError`), and fields that the table does not have are skipped.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        within = oneofs.get(name, {})
        choices = list(dict.fromkeys(within.values()))
        for choice in choices:
            message.oneof_decl.add(name=choice)
        for field in _FIELD.findall(fields):
            added = _add(message, *field, package=package)
            if added.name in within:
                added.oneof_index = choices.index(within[added.name])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    by_name: dict[str, Any] = {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages
    }
    return by_name


def _add(
    message: descriptor_pb2.DescriptorProto, name: str, number: str, count: str, kind: str, *, package: str
) -> descriptor_pb2.FieldDescriptorProto:
    label = _Field.LABEL_REPEATED if count == "*" else _Field.LABEL_OPTIONAL
    field = message.field.add(name=name, number=int(number), label=label)
    if kind in SCALARS:
        field.type = SCALARS[kind]
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{package}.{kind}"
    return field
