"""What a report says of the work of its programs, and of why one computes longer: on numbers given by hand."""

from dataclasses import replace
from typing import Any

import pytest

from compare.render.blocks import Fold, Sentence, Table
from compare.render.time.timing_section import ProgramTiming
from compare.render.time.work import compare_compute, work_blocks
from compare.report.model.codec import decode
from compare.report.model.timing import Timing
from tests.compare.render.timings import make_timing
from tests.compare.timing.build import row

MS = 1_000_000
AXES = {"pp": 2, "tp": 4}
CORE, UP = "layer.attention.core", "layer.mlp.up"


def part(ms: float, flops: float, moved: float) -> dict[str, Any]:
    return {
        "compute_ns": ms * MS, "matrix_flops": flops, "vector_ops": 0, "memory_bytes": moved, "ici_byte_hops": 0,
        "dcn_bytes": 0,
    }  # fmt: skip


def make_program(arm: str, compute_ms: float, by_scope: dict[str, Any], *rows: Any) -> ProgramTiming:
    """A default program whose step is 100 ms."""
    section = make_timing(label="modelled for v5e:2x4", exposed={}, step_ns=100 * MS, compute_ns=compute_ms * MS)
    work = {
        "matrix_flops": 18.6e12, "vector_ops": 5, "memory_bytes": 10.5e9, "ici_byte_hops": 6.23e9, "dcn_bytes": 0,
        "useful_flops": 14.8e12, "useful_share": 0.8, "mfu": 0.296, "matrix_share": 0.37, "memory_share": 0.0507,
        "roofline_ns": 94.2 * MS, "by_scope": by_scope,
    }  # fmt: skip
    return ProgramTiming(
        phase="prefill", arm=arm, title=arm, cell="tpu", default=True, platform=None,
        section=decode(Timing, section | {"work": work}), rows=tuple(rows),
    )  # fmt: skip


def gather(**more: Any) -> Any:
    made = row("ag", "all-gather", "tp", 100, ((0, 1, 2, 3), (4, 5, 6, 7)), induced=100)
    return replace(made, **{"scope": CORE} | more)


SHORT = make_program("JAX", 20, {CORE: part(5, 100, 10), UP: part(15, 900, 50)})


def long(*rows: Any, flops: float = 400) -> ProgramTiming:
    return make_program("TorchXLA", 58, {CORE: part(45, flops, 1140), UP: part(13, 900, 50)}, *rows)


WHAT = (
    "TorchXLA computes 38.0 ms longer than JAX: 40.0 ms in layer.attention.core (45.0 ms against 5.00 ms), with 4.00 × "
    "the FLOPs and 114 × the bytes of memory."
)
WHY = " It gathers over tp there, and then each of the 4 devices computes what they divide in JAX."


@pytest.mark.parametrize("swapped", [False, True])
def test_it_says_who_computes_longer_where_and_why(swapped: bool) -> None:
    pair = (SHORT, long(gather()))
    assert compare_compute(*pair[:: -1 if swapped else 1], axes=AXES) == WHAT + WHY


@pytest.mark.parametrize(
    "rows", [(), (gather(induced_bytes=0),), (gather(scope=UP),), (gather(kind="all-reduce"),), (gather(axes="pp"),)]
)
def test_no_reason_is_given_without_a_needless_gather_that_explains_it(rows: tuple[Any, ...]) -> None:
    assert compare_compute(SHORT, long(*rows), axes=AXES) == WHAT


def test_nor_where_the_flops_are_not_as_many_times_as_devices_gather() -> None:
    words = compare_compute(SHORT, long(gather(), flops=300), axes=AXES)
    assert words == WHAT.replace("4.00 ×", "3.00 ×")


def test_a_part_that_the_other_has_not_has_no_ratio() -> None:
    other = make_program("JAX", 20, {UP: part(20, 900, 50)})
    words = compare_compute(other, long(gather()), axes=AXES)
    assert words == "TorchXLA computes 38.0 ms longer than JAX: 45.0 ms in layer.attention.core (45.0 ms against 0 s)."


def test_programs_that_compute_alike_need_no_words() -> None:
    alike = make_program("TorchXLA", 20.9, {CORE: part(6, 100, 10)})
    assert compare_compute(SHORT, alike, axes=AXES) == ""


def test_the_tables_have_a_row_for_each_program_and_for_each_part_longest_first() -> None:
    words, fold = work_blocks("prefill", "modelled", [SHORT, long()], axes=AXES)
    assert isinstance(words, Sentence)
    assert isinstance(fold, Fold)
    assert words.words == WHAT
    _, programs, parts = fold.blocks
    assert isinstance(programs, Table)
    assert isinstance(parts, Table)
    assert [cell.words for cell in programs.rows[0].cells] == [
        "18.6 TFLOP", "80.0 %", "29.6 %", "10.5 GB", "5.07 %", "6.23 GB", "94.2 ms", "100 ms",
    ]  # fmt: skip
    assert [row.name for row in parts.rows] == [CORE, UP]
    assert [cell.words for cell in parts.rows[0].cells] == [
        "5.00 ms", "100 FLOP", "10 B", "45.0 ms", "400 FLOP", "1.14 kB",
    ]  # fmt: skip


def test_older_reports_without_work_show_nothing() -> None:
    bare = replace(SHORT, section=replace(SHORT.section, work=None))
    assert list(work_blocks("prefill", "modelled", [bare], axes=AXES)) == []
