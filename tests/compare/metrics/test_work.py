"""The sums of work over a step, on timelines whose answer is known by hand, and of the example's programs."""

import json

import pytest

from compare.contract.floor import Least
from compare.metrics.work import Peaks, summarize_work
from compare.report.model.codec import encode
from compare.report.model.timing import Times
from compare.timeline.columns import WORK_COLUMNS
from compare.timeline.timeline import COMPUTE, PART
from compare.timeline.tracks.tracks import DeviceTracks
from tests.compare.timeline.build import comm, compute, steps, timeline
from tests.places import EXAMPLE

STEP = Times(
    step_ns=1000,
    communication_ns=0,
    exposed_ns=0,
    hidden_ns=0,
    wait_ns=None,
    compute_ns=0,
    communication_fraction=0,
    overlap=None,
)


def worked(events, *, work, stands_for=None, scopes=None, marks=(0, 1000), **more):
    """work: of each event, in WORK_COLUMNS' order."""
    made = timeline(events, steps(*marks, devices=sorted({event["device"] for event in events})), stands_for=stands_for)
    order = sorted(range(len(events)), key=lambda at: (events[at]["device"], events[at]["start_ns"]))
    for column, name in enumerate(WORK_COLUMNS):
        made.events[name] = [float(work[at][column]) for at in order]
    made.events["scope"] = [scopes[at] if scopes else "norm" for at in order]
    return summarize_work(DeviceTracks.of(made), STEP, **{"useful_flops": None, "peaks": None} | more)


def test_a_device_that_stands_for_three_counts_three_times():
    events = [compute(0, 100), compute(0, 300, device=3)]
    work = worked(events, work=[(10, 0, 8, 0, 0), (50, 4, 0, 0, 0)], stands_for={0: (0, 1, 2), 3: (3,)})
    assert (work.matrix_flops, work.vector_ops, work.memory_bytes) == (20, 1, 6)
    assert work.by_scope["norm"].compute_ns == 150


def test_events_of_every_role_count_and_of_two_steps_the_mean():
    events = [compute(0, 10), compute(10, 20, role=PART), comm(1000, 1100)]
    work = worked(events, work=[(4, 0, 0, 0, 0), (0, 0, 6, 0, 0), (0, 0, 0, 8, 2)], marks=(0, 1000, 2000))
    assert [getattr(work, name) for name in WORK_COLUMNS] == [2, 0, 3, 4, 1]


def test_by_scope_they_add_up_and_what_has_none_is_shown():
    events = [compute(0, 10), compute(10, 40), comm(50, 60), compute(70, 90)]
    scopes = ["head", "", "head", "embed"]
    work = worked(events, work=[(1, 2, 3, 0, 0), (10, 0, 0, 0, 0), (0, 0, 0, 7, 0), (0, 0, 0, 0, 0)], scopes=scopes)
    assert set(work.by_scope) == {"?", "embed", "head"}
    assert (work.by_scope["head"].matrix_flops, work.by_scope["head"].ici_byte_hops) == (1, 7)
    assert (work.by_scope["?"].compute_ns, work.by_scope["head"].compute_ns) == (30, 10)
    for name in WORK_COLUMNS:
        assert getattr(work, name) == sum(getattr(part, name) for part in work.by_scope.values())


def test_shares_are_of_what_the_device_can_do_in_the_step():
    """1000 ns at 2 FLOPs and 0.5 bytes a ns: 2000 FLOPs and 500 bytes at most."""
    peaks = Peaks(flops_per_s=2e9, memory_bytes_per_s=0.5e9)
    work = worked([compute(0, 10)], work=[(400, 0, 300, 0, 0)], useful_flops=100, peaks=peaks)
    assert (work.useful_share, work.mfu, work.matrix_share, work.memory_share) == (0.25, 0.05, 0.2, 0.6)
    assert work.roofline_ns == 600  # the memory takes longer than the 200 ns of the matrix unit


def test_compute_is_parted_into_arithmetic_memory_and_the_rest():
    """At a FLOP and a byte a ns, in 100 ns: 40 of arithmetic, 60 of memory, so 20 longer.  10 ns hold no more than 10.

    The 30 ns of a wait are memory, whatever it moves.
    """
    names = ("product", "kernel", "copy-done.1")
    events = [
        compute(start, end, name=name) for start, end, name in zip((0, 100, 110), (100, 110, 140), names, strict=True)
    ]
    rate = Peaks(flops_per_s=1e9, memory_bytes_per_s=1e9)
    moved = [(40, 0, 60, 0, 0), (50, 0, 70, 0, 0), (0, 0, 0, 0, 0)]
    part = worked(events, work=moved, reached=rate, waits={"copy-done.1"}).by_scope["norm"]
    assert (part.compute_ns, part.arithmetic_ns, part.memory_ns) == (140, 40 + 10, 20 + 30)


def test_a_floor_is_the_longer_of_bytes_and_flops_and_parts_have_their_own():
    """10 + 40 bytes and 90 + 0 FLOPs at 1 and 2 a ns: 50 and 45 ns together; 45 and 40 ns of the parts."""
    floor = {"norm": Least(10, 90), "head": Least(40, 0)}
    rate = Peaks(flops_per_s=2e9, memory_bytes_per_s=1e9)
    work = worked([compute(0, 10)], work=[(1, 0, 1, 0, 0)], reached=rate, floor=floor)
    assert (work.floor_ns, work.floor_bytes, work.floor_flops) == (50, 50, 90)
    assert work.by_scope["norm"].floor_ns == 45


def test_without_rates_there_is_no_floor_and_no_key_of_one():
    work = encode(worked([compute(0, 10)], work=[(1, 0, 1, 0, 0)], floor={"norm": Least(10, 90)}))
    assert not {key for key in (*work, *work["by_scope"]["norm"]) if key.startswith(("floor", "arith", "memory_ns"))}


def test_unknown_work_is_left_out_of_compute_and_makes_a_network_unknown():
    nan = float("nan")
    work = worked([compute(0, 10), comm(20, 30)], work=[(nan, 1, 2, 0, 0), (0, 0, 0, nan, nan)])
    assert (work.matrix_flops, work.vector_ops, work.ici_byte_hops) == (0, 1, None)
    assert (work.mfu, work.useful_share, work.roofline_ns) == (None, None, None)


def test_a_timeline_without_a_program_has_no_work():
    made = timeline([compute(0, 10)], steps(0, 100))
    assert made.events["role"].eq(COMPUTE).all()
    assert summarize_work(DeviceTracks.of(made), STEP, useful_flops=None, peaks=None) is None


LAYERS = 32 * (4096 * (4096 + 1024 + 1024) + 4096 * 4096 + 3 * 4096 * 14336)
"""Multiply-adds of a token in the matrices of Llama-3.1-8B's layers."""


def example(phase, arm):
    report = json.loads((EXAMPLE / "report.json").read_text())
    return report["phases"][phase]["arms"][arm]["timing"]["work"]


@pytest.mark.parametrize(("phase", "tokens", "places"), [("prefill", 8 * 1024, 1024), ("decode", 8, 1152)])
@pytest.mark.parametrize(("arm", "times"), [("jax", 1), ("torchxla", 4)])
def test_the_examples_programs_compute_what_the_model_and_the_plan_say(phase, tokens, places, arm, times):
    """8 devices, 5 ticks for 4 microbatches, and the head on both stages.

    PyTorch/XLA gathers q, k and v over tp4, and computes the attention of all heads on each of the 4 devices.
    """
    work, attention = example(phase, arm), 4 * tokens * places * 32 * 128 * 32
    head = 2 * 8 * 4096 * 128256
    assert work["useful_flops"] == (2 * LAYERS * tokens + attention + head) / 8
    assert work["matrix_flops"] == ((2 * LAYERS * tokens + times * attention) * 5 / 4 + 2 * head) / 8
    assert work["by_scope"]["layer.attention.core"]["matrix_flops"] == times * attention * 5 / 4 / 8
