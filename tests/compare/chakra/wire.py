"""A reader of Chakra files of the tests' own: bytes by protobuf's wire format, field numbers by `et_def.proto`."""

from dataclasses import dataclass, field

BOOL, STRING, INT32, INT64, UINT64 = 27, 29, 7, 9, 13
"""Fields of an attribute's value."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7


def read_fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """(number, value) of every field, in order; a varint as a number, bytes as they are."""
    at, fields = 0, []
    while at < len(message):
        key, at = read_varint(message, at)
        value, at = read_varint(message, at)
        if key & 7 == 2:
            value, at = message[at : at + value], at + value
        else:
            assert key & 7 == 0, "only numbers and bytes are written"
        fields.append((key >> 3, value))
    return fields


def read_messages(data: bytes) -> list[bytes]:
    at, messages = 0, []
    while at < len(data):
        size, at = read_varint(data, at)
        assert at + size <= len(data)
        messages.append(data[at : at + size])
        at += size
    return messages


def read_numbers(packed: bytes) -> list[int]:
    at, numbers = 0, []
    while at < len(packed):
        number, at = read_varint(packed, at)
        numbers.append(number)
    return numbers


def read_attribute(message: bytes) -> tuple[str, int, int | str]:
    """(name, field of the value, value)."""
    (one, name), (number, value) = read_fields(message)
    assert one == 1
    return name.decode(), number, value.decode() if isinstance(value, bytes) else value


@dataclass
class Node:
    """A node as it is in the file."""

    id: int = 0
    name: str = ""
    type: int = 0
    ctrl_deps: list[int] = field(default_factory=list)
    deps: list[int] = field(default_factory=list)
    duration: int = 0
    attributes: list[tuple[str, int, int | str]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """Of its fields, in the order of the file."""

    def __getitem__(self, name: str) -> int | str:
        (value,) = [value for key, _, value in self.attributes if key == name]
        return value

    def has(self, name: str) -> bool:
        return any(key == name for key, _, _ in self.attributes)


def read_node(message: bytes) -> Node:
    node = Node()
    for number, value in read_fields(message):
        node.numbers.append(number)
        if number == 10:
            node.attributes.append(read_attribute(value))
        elif number in (4, 5):
            (node.ctrl_deps if number == 4 else node.deps).extend(read_numbers(value))
        elif number == 2:
            node.name = value.decode()
        else:
            setattr(node, {1: "id", 3: "type", 7: "duration"}[number], value)
    return node


def read_file(data: bytes) -> tuple[list[tuple[int, object]], list[Node]]:
    """(fields of the metadata, with attributes read; nodes)."""
    head, *nodes = read_messages(data)
    metadata = [
        (number, read_attribute(value) if number == 2 else value.decode()) for number, value in read_fields(head)
    ]
    return metadata, [read_node(node) for node in nodes]
