"""Which small programs are timed on a device of each platform."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

MATMUL, COPY, ELEMENTWISE, IDLE = "matmul", "copy", "elementwise", "idle"
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
KINDS = (MATMUL, COPY, ELEMENTWISE, *COLLECTIVES)
ALL = 0
"""Devices of a collective: as many as there are."""
DEPTH = 4
"""Products or collectives in one call of a program."""
KIB, MIB = 1 << 10, 1 << 20


class Sizes(NamedTuple):
    """The sizes of the programs, and how long a window is."""

    dtype: str
    matmul: tuple[int, ...]
    """Of square matrices."""
    copy_bytes: tuple[int, ...]
    """Read and written together."""
    elementwise: tuple[tuple[int, int], ...]
    """(bytes, pairs of operations on each element)"""
    collective_bytes: tuple[int, ...]
    """Payload of a device."""
    seconds: float


_LARGE = Sizes(
    dtype="bf16",
    matmul=(1024, 2048, 4096, 8192),
    copy_bytes=(16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB),
    elementwise=((16 * MIB, 64), (64 * MIB, 16), (64 * MIB, 128), (256 * MIB, 64)),
    collective_bytes=(64 * KIB, MIB, 16 * MIB, 128 * MIB),
    seconds=2.0,
)
SIZES: Mapping[str, Sizes] = {
    "cpu": Sizes(
        dtype="f32",
        matmul=(128, 256, 512),
        copy_bytes=(4 * MIB, 16 * MIB, 64 * MIB),
        elementwise=((MIB, 16), (MIB, 64), (4 * MIB, 32)),
        collective_bytes=(16 * KIB, 256 * KIB, 2 * MIB),
        seconds=0.05,
    ),
    "gpu": _LARGE,
    "tpu": _LARGE,
}
"""A window of two seconds holds many updates of a power counter (a GPU's moves every 0.1 s)."""


def list_programs(platform: str, *, kinds: tuple[str, ...]) -> list[dict[str, object]]:
    """The requests; of a collective over two devices and over all."""
    return [program for kind in kinds for program in _programs(kind, SIZES[platform])]


def _programs(kind: str, sizes: Sizes) -> Iterator[dict[str, object]]:
    common = {"kind": kind, "dtype": sizes.dtype, "depth": DEPTH}
    if kind == MATMUL:
        for size in sizes.matmul:
            yield {**common, "name": f"{kind} {size}", "size": size}
    elif kind == COPY:
        for num_bytes in sizes.copy_bytes:
            yield {**common, "name": f"{kind} {_bytes(num_bytes)}", "bytes": num_bytes}
    elif kind == ELEMENTWISE:
        for num_bytes, ops in sizes.elementwise:
            yield {**common, "name": f"{kind} {_bytes(num_bytes)} × {2 * ops}", "bytes": num_bytes, "ops": ops}
    else:
        for devices in (2, ALL):
            for num_bytes in sizes.collective_bytes:
                name = f"{kind} {_bytes(num_bytes)} over {devices or 'all'}"
                yield {**common, "name": name, "bytes": num_bytes, "devices": devices}


def _bytes(count: int) -> str:
    return f"{count // MIB} MiB" if count >= MIB else f"{count // KIB} KiB"
