"""What a compiled executable says of itself: memory, cost, text, and which device runs which partition."""

from collections.abc import Iterator, Sequence
from typing import Any

_DEVICE_ASSIGNMENT = 15
"""The field of `HloModuleProto`; in it, field 3 is a row of ids for each partition (xla/xla_data.proto)."""
_PARTITION = 3


def memory(executable: Any) -> dict[str, int | None]:
    """Bytes of one device."""
    stats = executable.get_compiled_memory_stats()
    return {
        "argument_bytes": stats.argument_size_in_bytes,
        "output_bytes": stats.output_size_in_bytes,
        "temp_bytes": stats.temp_size_in_bytes,
        "alias_bytes": stats.alias_size_in_bytes,
        "generated_code_bytes": stats.generated_code_size_in_bytes,
        "peak_bytes": getattr(stats, "peak_memory_in_bytes", None) or None,
    }


def cost(executable: Any) -> dict[str, float | str | None]:
    """libtpu's model of one device: an estimate, never a measurement, and of a program with loops *not* of a step.

    It counts each loop's body once, however often it runs (a scan of 2 and of 64 matmuls cost the same: tested), which
    `loop_bodies` says.  `optimal_s` comes out negative for some programs with loops, for a reason that was not found:
    that is no time, and reads null.
    """
    analysis = executable.cost_analysis()
    optimal_s = analysis.get("optimal_seconds")
    return {
        "flops": analysis.get("flops"),
        "bytes_accessed": analysis.get("bytes accessed"),
        "optimal_s": None if optimal_s is None or optimal_s < 0 else optimal_s,
        "loop_bodies": "counted once",
    }


def device_assignment(module: Any) -> list[int]:
    """The device id that runs partition 0, 1, …, as the compiled module holds it (its text does not show it)."""
    proto = memoryview(module.as_serialized_hlo_module_proto())
    rows = [row for number, field in _fields(proto) if number == _DEVICE_ASSIGNMENT for row in _fields(field)]
    return [_varint(ids, 0)[0] for number, row in rows if number == _PARTITION for _, ids in _fields(row)]


def stripped(text: str, prefixes: Sequence[str]) -> str:
    """HLO text with these folders taken off its source paths, so that it can be mailed and committed.

    Paths stand in the `FileNames` table; older spellings have `source_file="…"` beside each instruction.
    """
    folders = sorted({prefix.rstrip("/") + "/" for prefix in prefixes if prefix.strip("/")}, key=len, reverse=True)
    start = text.find("\nFileNames\n")
    end = text.find("\n\n", start) if start >= 0 else start
    table, rest = text[:end], text[end:]
    for folder in folders:
        table = table.replace(f'"{folder}', '"')
        rest = rest.replace(f'source_file="{folder}', 'source_file="')
    return table + rest


def _fields(proto: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a protocol buffer message: number and bytes (of a varint, its own)."""
    at = 0
    while at < len(proto):
        tag, at = _varint(proto, at)
        if tag & 7 == 2:
            size, at = _varint(proto, at)
            end = at + size
        elif tag & 7 == 0:
            end = _varint(proto, at)[1]
        else:
            end = at + (8 if tag & 7 == 1 else 4)
        yield tag >> 3, proto[at:end]
        at = end


def _varint(proto: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = proto[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
