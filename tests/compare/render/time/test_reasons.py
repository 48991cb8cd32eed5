"""Why one program computes longer, and what lies above a floor: on numbers given by hand."""

from dataclasses import replace
from typing import Any

import pytest

from compare.render.time.speed.reasons import compare_compute, fastest_control, over_floor_sentence
from compare.render.time.timing_section import ProgramTiming
from tests.compare.render.time.programs import MS, make_program, operation, part
from tests.compare.timeline.build import row

AXES = {"pp": 2, "tp": 4}
CORE, UP = "layer.attention.core", "layer.mlp.up"


def gather(**more: Any) -> Any:
    made = row("ag", "all-gather", "tp", 100, ((0, 1, 2, 3), (4, 5, 6, 7)), induced=100)
    return replace(made, **{"scope": CORE} | more)


SHORT = make_program("JAX", 20, {CORE: part(5, 100, 10), UP: part(15, 900, 50)})


def long(*rows: Any, flops: float = 400, **more: Any) -> ProgramTiming:
    return make_program("TorchXLA", 58, {CORE: part(45, flops, 1140), UP: part(13, 900, 50)}, *rows, **more)


def einsum(compute_ms: float, *rows: Any) -> ProgramTiming:
    return make_program("TorchXLA", compute_ms, {}, *rows, cell="tpu+einsum", step_ms=compute_ms + 5)


WHAT = (
    "TorchXLA computes 38.0 ms longer than JAX: 40.0 ms in layer.attention.core (45.0 ms against 5.00 ms), with 4.00 × "
    "the FLOPs and 114 × the bytes of memory."
)
WHY = (
    " It gathers over tp there, and then each of the 4 devices computes what they divide in JAX. 4.00 × the work "
    "would take 20.0 ms; the other 25.0 ms come with 28.50 × the bytes of memory per FLOP: TorchXLA's results there no "
    "longer fit in the on-chip memory that holds them in JAX, and are written out and read back."
)
REMOVED = " `tpu+einsum` (the same model with attention written as einsum) computes 2.00 ms longer than JAX."


def words_of(first: ProgramTiming, second: ProgramTiming, *others: ProgramTiming) -> str:
    return compare_compute(first, second, axes=AXES, others=others)


@pytest.mark.parametrize("swapped", [False, True])
def test_it_says_who_computes_longer_where_and_why(swapped: bool) -> None:
    """The control gathers nothing, and computes 22 ms: 36 of the 38 ms are gone."""
    pair = [SHORT, long(gather())][:: -1 if swapped else 1]
    assert words_of(*pair, *pair, einsum(22)) == WHAT + WHY + REMOVED


def test_a_control_that_computes_less_than_the_other_says_so() -> None:
    assert words_of(SHORT, long(gather()), einsum(19)).endswith("computes 1.00 ms shorter than JAX.")


def test_four_times_the_flops_are_no_reason_where_the_control_without_them_is_as_slow() -> None:
    """As where a cache is copied: four times the FLOPs take no time, and the control keeps 30 of 38 ms."""
    assert words_of(SHORT, long(gather()), einsum(50)) == WHAT


def test_nor_where_no_control_was_made() -> None:
    assert words_of(SHORT, long(gather())) == WHAT


def test_nor_where_the_control_that_computes_less_gathers_too() -> None:
    words = words_of(SHORT, long(gather()), einsum(22, gather()))
    assert words == WHAT + REMOVED


def test_the_flops_are_the_reason_where_they_take_most_of_the_difference_at_the_peak() -> None:
    """20 of 40 ms are less than most; 24 are more."""
    for arithmetic, says in ((19, False), (24, True)):
        more = make_program("TorchXLA", 58, {CORE: part(45, 400, 1140, arithmetic=arithmetic, memory=0)}, gather())
        less = make_program("JAX", 20, {CORE: part(5, 100, 10, arithmetic=0, memory=0)})
        assert (WHY in words_of(less, more)) == says


def test_the_work_alone_is_the_reason_where_bytes_grow_as_it_does() -> None:
    """Four times the FLOPs and six times the bytes, 1.5 a FLOP; or four times the time: no second cause."""
    for milliseconds, moved in ((45, 60), (20, 1140)):
        more = make_program("TorchXLA", 58, {CORE: part(milliseconds, 400, moved, arithmetic=39)}, gather())
        less = make_program("JAX", 20, {CORE: part(5, 100, 10, arithmetic=0)})
        said = words_of(less, more)
        assert "computes what they divide in JAX." in said
        assert "a FLOP" not in said


@pytest.mark.parametrize(
    "rows", [(), (gather(induced_bytes=0),), (gather(scope=UP),), (gather(kind="all-reduce"),), (gather(axes="pp"),)]
)
def test_no_reason_is_given_without_a_needless_gather_that_explains_it(rows: tuple[Any, ...]) -> None:
    assert words_of(SHORT, long(*rows), einsum(22)) == WHAT + REMOVED


def test_nor_where_the_flops_are_not_as_many_times_as_devices_gather() -> None:
    words = words_of(SHORT, long(gather(), flops=300), einsum(22))
    assert words == WHAT.replace("4.00 ×", "3.00 ×") + REMOVED


def test_a_witness_and_another_framework_are_no_controls() -> None:
    others = (replace(einsum(22), cell="hf-torchxla"), replace(einsum(22), arm="jax"))
    assert words_of(SHORT, long(gather()), *others) == WHAT


def test_a_difference_is_parted_into_memory_other_work_and_arithmetic() -> None:
    """Of 40 ms 22 are memory (24 − 2), 10 arithmetic (11 − 1) and 8 the rest (10 − 2)."""
    more = make_program("TorchXLA", 58, {CORE: part(45, 400, 1140, arithmetic=11, memory=24)})
    less = make_program("JAX", 20, {CORE: part(5, 100, 10, arithmetic=1, memory=2)})
    words = words_of(less, more)
    assert "Memory traffic takes 22.0 ms of that, arithmetic 10.0 ms and other work 8.00 ms." in words


def test_a_kind_of_work_below_a_twentieth_is_left_out() -> None:
    more = make_program("TorchXLA", 58, {CORE: part(45, 400, 1140, arithmetic=1, memory=44)})
    less = make_program("JAX", 20, {CORE: part(5, 100, 10, arithmetic=0, memory=5)})
    assert "Memory traffic takes 39.0 ms of that." in words_of(less, more)


CACHE = "bf16[32,1,8,1152,128]"


def test_without_a_reason_the_operations_are_listed_that_the_other_has_not() -> None:
    """A copy of 26 ms, of which the other has 1; a reduction that both have as long; a gather, which is no compute."""
    copies = {"tensors": ("cache.k", "cache.v"), "executions": 64, "memory_bytes": 7.25e9}
    more = long(
        gather(),
        operations=(
            operation(30, "all-gather", CACHE, CORE, role="communication", memory_bytes=None, payload_bytes=5),
            operation(26, "copy", CACHE, CORE, **copies),
            operation(5, "reduce", "f32[8]", CORE),
            operation(4, "fusion", "bf16[8]", CORE, path="aten__index_select"),
            operation(3, "slice", "s8[512]", CORE, role="copy"),
            operation(9, "fusion", "bf16[4]", UP),
        ),
    )
    less = replace(
        SHORT,
        section=replace(
            SHORT.section,
            operations=long(
                operations=(operation(1, "copy", CACHE, CORE), operation(4.9, "reduce", "f32[8]", CORE))
            ).section.operations,
        ),
    )
    assert words_of(less, more, einsum(50)) == WHAT + (
        f" Its longest operations there: 64 × copy of {CACHE}, cache.k and cache.v, 26.0 ms, 7.25 GB; "
        "4 × fusion (aten__index_select) of bf16[8], 4.00 ms; 4 × wait for slice of s8[512], 3.00 ms."
    )


def test_a_part_that_the_other_has_not_has_no_ratio() -> None:
    other = make_program("JAX", 20, {UP: part(20, 900, 50)})
    words = words_of(other, long(gather()))
    assert words == "TorchXLA computes 38.0 ms longer than JAX: 45.0 ms in layer.attention.core (45.0 ms against 0 s)."


def test_programs_that_compute_alike_need_no_words() -> None:
    alike = make_program("TorchXLA", 20.9, {CORE: part(6, 100, 10)})
    assert words_of(SHORT, alike) == ""


def test_a_program_above_twice_its_floor_is_named_with_what_takes_it_there() -> None:
    """A copy is all above; two waits and a product share the floor of their part, 3 of 12 ms, by their time."""
    scopes = {CORE: part(40, 1, 1, floor=3), UP: part(18, 1, 1, floor=6)}
    operations = (
        operation(20, "copy", CACHE, CORE, tensors=("cache.k",), memory_bytes=7e9),
        operation(9, "fusion", "bf16[8]", CORE, matrix_flops=5, memory_bytes=2e9),
        operation(3, "slice", "s8[9]", CORE, role="copy"),
        operation(6, "fusion", "bf16[7]", UP, matrix_flops=5),
    )
    timing = make_program("TorchXLA", 58, scopes, floor_ms=10, operations=operations)
    assert over_floor_sentence(timing) == (
        f"TorchXLA `tpu` computes 5.80 × its floor (10.0 ms): 4 × copy of {CACHE} (cache.k) in {CORE} take 20.0 ms and "
        f"move 7.00 GB; 4 × fusion of bf16[8] in {CORE} take 9.00 ms and move 2.00 GB, 6.75 ms above the floor there."
    )


@pytest.mark.parametrize(("floor_ms", "says"), [(29, ""), (28, "2.07 × its floor (28.0 ms)."), (None, "")])
def test_twice_is_not_above_and_a_report_without_floors_says_nothing(floor_ms: float | None, says: str) -> None:
    words = over_floor_sentence(make_program("JAX", 58, {}, floor_ms=floor_ms))
    assert words == (f"JAX `tpu` computes {says}" if says else "")


def test_a_measured_program_ran_at_other_rates_than_the_floors() -> None:
    timing = make_program("JAX", 58, {}, floor_ms=10)
    assert over_floor_sentence(replace(timing, section=replace(timing.section, source="measured"))) == ""


def test_the_control_whose_step_is_shortest_is_the_change_that_helps() -> None:
    timing, control = long(), einsum(22)
    assert fastest_control(timing, [SHORT, timing, control, replace(control, cell="hf-torchxla")]) == (
        "TorchXLA's step takes 27.0 ms in `tpu+einsum`, 73.0 ms less: the same model with attention written as einsum."
    )
    slower = replace(
        control, section=replace(control.section, per_step=replace(control.section.per_step, step_ns=99.5 * MS))
    )
    assert fastest_control(timing, [timing, slower]) == ""
