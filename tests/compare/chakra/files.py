"""Chakra files of the tests' own, written as bytes by protobuf's wire format."""

import json
import struct
from pathlib import Path

from compare.chakra.reader import Trace, build_trace, read_folder
from tests.compare.chakra.wire import BOOL, INT32, INT64, STRING, UINT64

_FIXED = {3: "<d", 5: "<f", 19: "<I", 21: "<Q", 23: "<i", 25: "<q"}
"""Fields of an attribute's value that are no varints."""


def varint(number: int) -> bytes:
    data = b""
    while number > 0x7F:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


def numbered(field: int, value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return varint(field << 3 | 2) + varint(len(value)) + value
    return varint(field << 3) + varint(value)


def attribute(name: str, field: int | None, value: int | str | None) -> bytes:
    data = numbered(1, name.encode())
    if field in _FIXED:
        packed = struct.pack(_FIXED[field], value)
        data += varint(field << 3 | (1 if len(packed) == 8 else 5)) + packed
    elif field is not None:
        if field in (15, 17):  # zigzag
            value = 2 * value
        data += numbered(field, value.encode() if isinstance(value, str) else value)
    return numbered(10, data)


def node(number: int, kind: int, *, duration: int = 0, deps=(), ctrl=(), attributes=()) -> bytes:
    data = numbered(1, number) + numbered(2, f"n{number}".encode()) + numbered(3, kind)
    for field, ids in ((4, ctrl), (5, deps)):
        if ids:
            data += numbered(field, b"".join(map(varint, ids)))
    return data + numbered(7, duration) + b"".join(attributes)


def compute(number: int, duration: int, *, deps=(), cpu: bool = False) -> bytes:
    return node(number, 4, duration=duration, deps=deps, attributes=[attribute("is_cpu_op", BOOL, int(cpu))])


def collective(number: int, kind: int, size: int, *, group: str = "", deps=(), size_field: int = INT64) -> bytes:
    words = [attribute("comm_type", INT64, kind), attribute("comm_size", size_field, size)]
    words += [attribute("pg_name", STRING, group)] if group else []
    return node(number, 7, deps=deps, attributes=words)


def remote(number: int, size: int, *, deps=()) -> bytes:
    """A MEM_LOAD_NODE."""
    return node(number, 2, deps=deps, attributes=[attribute("tensor_size", UINT64, size)])


def invalid(number: int, *, deps=()) -> bytes:
    return node(number, 0, deps=deps)


def cpu(number: int, duration: int, *, deps=()) -> bytes:
    return compute(number, duration, deps=deps, cpu=True)


def flops(number: int, num_ops: int, size: int, *, deps=()) -> bytes:
    words = [attribute("is_cpu_op", BOOL, 0), attribute("num_ops", INT64, num_ops)]
    return node(number, 4, deps=deps, attributes=[*words, attribute("tensor_size", UINT64, size)])


def part(number: int, kind: int, size: int, dims: list[int], *, deps=()) -> bytes:
    """A collective over some dims."""
    words = [attribute("comm_type", INT64, kind), attribute("comm_size", INT64, size)]
    involved = numbered(10, numbered(1, b"involved_dim") + numbered(28, numbered(1, bytes(dims))))
    return node(number, 7, deps=deps, attributes=[*words, involved])


def send(number: int, to: int, tag: int, size: int, *, deps=()) -> bytes:
    return _message(number, 5, "comm_dst", to, tag, size, deps)


def receive(number: int, source: int, tag: int, size: int, *, deps=()) -> bytes:
    return _message(number, 6, "comm_src", source, tag, size, deps)


def _message(number: int, kind: int, other: str, rank: int, tag: int, size: int, deps) -> bytes:
    words = [attribute("comm_size", INT64, size), attribute(other, INT32, rank), attribute("comm_tag", INT32, tag)]
    return node(number, kind, deps=deps, attributes=words)


def write_file(path: Path, nodes: list[bytes]) -> None:
    head = numbered(1, b"0.0.4")
    path.write_bytes(b"".join(varint(len(message)) + message for message in (head, *nodes)))


def write_trace(folder: Path, nodes: list[list[bytes]], *, groups: dict[str, list[int]] | None = None) -> Path:
    """`w.0.et`, `w.1.et` … and groups.json."""
    for rank, of_rank in enumerate(nodes):
        write_file(folder / f"w.{rank}.et", of_rank)
    if groups is not None:
        ranks = len(nodes)
        inside = {key: members for key, members in groups.items() if all(rank < ranks for rank in members)}
        (folder / "groups.json").write_text(json.dumps(inside))
    return folder


def read_trace(folder: Path, **options) -> Trace:
    return build_trace(read_folder(folder), **options)
