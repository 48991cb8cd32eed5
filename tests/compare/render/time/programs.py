"""Programs with times and work given by hand."""

from typing import Any

from compare.render.time.timing_section import ProgramTiming
from compare.report.model.codec import decode
from compare.report.model.timing import Timing
from tests.compare.render.timings import make_timing

MS = 1_000_000


def part(ms: float, flops: float, moved: float, **known_ms: float) -> dict[str, Any]:
    """The work of one scope; known_ms: `arithmetic`, `memory`, `floor`."""
    return {
        "compute_ns": ms * MS,
        "matrix_flops": flops,
        "vector_ops": 0,
        "memory_bytes": moved,
        "ici_byte_hops": 0,
        "dcn_bytes": 0,
        **{f"{name}_ns": amount * MS for name, amount in known_ms.items()},
    }


def operation(ms: float, opcode: str, shape: str, scope: str, **more: Any) -> dict[str, Any]:
    """Four executions that compute; more: other fields."""
    return {
        "role": "compute",
        "opcode": opcode,
        "shape": shape,
        "path": None,
        "scope": scope,
        "source_line": None,
        "name": f"{opcode}.1",
        "instructions": 1,
        "tensors": (),
        "executions": 4,
        "time_ns": ms * MS,
        "matrix_flops": 0,
        "memory_bytes": 0,
        "payload_bytes": None,
        "arithmetic_ns": 0,
        "memory_ns": 0,
        "bound": "other",
    } | more


def make_program(
    arm: str,
    compute_ms: float,
    by_scope: dict[str, Any],
    *rows: Any,
    cell: str = "tpu",
    step_ms: float = 100,
    operations: tuple[dict[str, Any], ...] | None = None,
    floor_ms: float | None = None,
) -> ProgramTiming:
    """One program; it is a default one in the cell `tpu`."""
    section = make_timing(
        label="modelled for v5e:2x4", exposed={}, step_ns=step_ms * MS, compute_ns=compute_ms * MS, exposed_ns=0
    )
    work = {
        "matrix_flops": 18.6e12,
        "vector_ops": 5,
        "memory_bytes": 10.5e9,
        "ici_byte_hops": 6.23e9,
        "dcn_bytes": 0,
        "useful_flops": 14.8e12,
        "useful_share": 0.8,
        "mfu": 0.296,
        "matrix_share": 0.37,
        "memory_share": 0.0507,
        "roofline_ns": 94.2 * MS,
        "by_scope": by_scope,
    }
    if floor_ms is not None:
        work |= {"floor_ns": floor_ms * MS, "floor_bytes": 5.25e9, "floor_flops": 1e12}
    if operations is not None:
        section |= {"operations": operations}
    return ProgramTiming(
        phase="prefill",
        arm=arm.lower(),
        title=arm,
        cell=cell,
        default=cell == "tpu",
        platform=None,
        section=decode(Timing, section | {"work": work}),
        rows=tuple(rows),
    )
