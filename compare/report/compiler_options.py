"""Compiler options of libtpu that a program can be compiled with instead of the default ones, by short words.

Each is accepted by libtpu 0.0.42 and changes programs: docs/sweeps.md says which.  All that they turn off is
on by default.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

CELL = "tpu+xla-"
"""Prefix of the names of their cells."""


class CompilerOption(NamedTuple):
    """Flags of XLA and libtpu that belong together."""

    what: str
    """As a clause: `with asynchronous collectives off`."""
    flags: Mapping[str, str]


_ASYNC = (
    "xla_enable_async_all_gather",
    "xla_enable_async_all_reduce",
    "xla_enable_async_collective_permute",
    "xla_enable_async_reduce_scatter_fusion",
    "xla_tpu_enable_async_all_to_all",
    "xla_tpu_enable_async_collective_fusion",
)
_WINDOWED = ("xla_tpu_enable_windowed_einsum_for_all_gather", "xla_tpu_enable_windowed_einsum_for_reduce_scatter")
_MODES = ("xla_tpu_all_gather_collective_matmul_mode", "xla_tpu_reduce_scatter_collective_matmul_mode")

OPTIONS: Mapping[str, CompilerOption] = MappingProxyType(
    {
        "async-off": CompilerOption("with asynchronous collectives off", dict.fromkeys(_ASYNC, "false")),
        "scheduler-off": CompilerOption(
            "without the latency-hiding scheduler", {"xla_tpu_enable_latency_hiding_scheduler": "false"}
        ),
        "overlap-off": CompilerOption(
            "without overlap of compute and collectives", {"xla_tpu_overlap_compute_collective_tc": "false"}
        ),
        "collective-matmul-off": CompilerOption("without collective matmuls", dict.fromkeys(_WINDOWED, "false")),
        "collective-matmul-late": CompilerOption(
            "with collective matmuls made after the partitioner", dict.fromkeys(_MODES, "post_spmd")
        ),
    }
)
"""Word -> its flags."""


def option_of(cell: str) -> str:
    """The word of a cell's options; empty for any other cell."""
    return cell.removeprefix(CELL) if cell.startswith(CELL) else ""
