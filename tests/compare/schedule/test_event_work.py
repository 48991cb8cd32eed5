"""The work of the events of a modelled step: elements, bytes of memory, bytes × links, all by hand."""

import pytest

from compare.schedule import trace_writer
from compare.timeline.columns import WORK_COLUMNS
from compare.timeline.timeline import Timeline
from tests.compare.schedule.toys import BACK, BETWEEN_SLICES, LOOPED, SHIFT, X, all_reduce, loop, program, run

ICI = "ici_byte_hops"


def work_of_step(timeline: Timeline) -> dict[str, float]:
    """Summed over all devices."""
    weights = timeline.events["device"].map({device: len(alike) for device, alike in timeline.stands_for.items()})
    return {name: float((timeline.events[name] * weights).sum()) for name in WORK_COLUMNS}


def of_events(timeline: Timeline, device: int, column: str) -> dict[str, float]:
    (shown,) = (first for first, alike in timeline.stands_for.items() if device in alike)
    rows = timeline.events[timeline.events["device"].eq(shown) & timeline.events[column].ne(0)]
    return dict(zip(rows["hlo_op"].astype(str), rows[column], strict=True))


def test_an_all_reduce_around_a_line_comes_back_over_all_its_links():
    """Of 4 chips in a line, 4000 bytes: 2·3/4 of them between two neighbours of the ring, half either way.

    So 8 messages of 3000 bytes: six over one link and two, between the ends, over three.
    """
    timeline = run(program(f"  ROOT y = {X} {all_reduce('x')}"))
    assert work_of_step(timeline)[ICI] == 2 * (6 * 3000 + 2 * 3000 * 3)
    assert set(timeline.events.loc[timeline.events[ICI].ne(0), "role"]) == {"communication"}


@pytest.mark.parametrize("pairs", [SHIFT, BACK, "{{0,0},{1,2},{3,1}}"])
def test_a_permute_counts_each_senders_bytes_by_the_links_crossed(pairs):
    hops = {SHIFT: 4, BACK: 4, "{{0,0},{1,2},{3,1}}": 1 + 2}[pairs]
    entry = f"  ROOT y = {X} collective-permute(x), channel_id=1, source_target_pairs={pairs}"
    assert work_of_step(run(program(entry)))[ICI] == 4000 * hops


def test_bytes_of_a_started_collective_are_on_its_event_from_start_to_done_alone():
    begun = all_reduce("x").replace("all-reduce(", "all-reduce-start(")
    timeline = run(program(f"  s = {X} {begun}\n  y = {X} compute(x, 50)\n  ROOT d = {X} all-reduce-done(s)\n"))
    rows = timeline.events[timeline.events[ICI].ne(0)]
    assert rows[["hlo_op", "role"]].drop_duplicates().values.tolist() == [["s", "communication"]]
    assert work_of_step(timeline)[ICI] == 2 * (6 * 3000 + 2 * 3000 * 3)
    assert work_of_step(timeline)["vector_ops"] == 8 * 1000  # the fusion, which negates a thousand


def test_bytes_between_slices_are_not_those_of_the_torus():
    work = work_of_step(run(program(BETWEEN_SLICES, head="num_partitions=4"), mesh="dp2tp4@2xv5e:2x2"))
    assert (work[ICI], work["dcn_bytes"]) == (0, 4 * 4000)


def test_a_local_copy_has_its_bytes_from_start_to_done_and_its_wait_has_none():
    entry = f"""
  w = f32[1000]{{0}} parameter(1)
  s = ({X}, f32[1000]{{0}}, u32[]) copy-start(w)
  d = {X} copy-done(s)
  ROOT y = {X} compute(d, 0), metadata={{op_name="layer.mlp.up"}}
"""
    timeline = run(program(entry))
    assert of_events(timeline, 0, "memory_bytes") == {"s": 4000}
    assert set(timeline.events["scope"]) == {"layer.mlp.up"}
    assert timeline.events.set_index("hlo_op").loc["d", "duration_ns"] == 40


def test_what_an_instruction_reads_and_produces_is_on_each_of_its_executions():
    body = f"  w = f32[1000]{{0}} negate(y)\n  z = {X} {all_reduce('y')}\n  last = {X} compute(z, 100)"
    timeline = run(program(LOOPED, more=loop(body, trips=3)))
    rows = timeline.events[timeline.events["role"] == "compute"]
    assert (
        rows[["hlo_op", "vector_ops", "memory_bytes"]].values.tolist()
        == [
            ["w", 1000, 4000],
            ["last", 1000, 0],
        ]
        * 3
    )


def test_loops_and_runs_that_are_drawn_as_one_event_keep_all_their_work(monkeypatch):
    body = f"  z = {X} compute(y, 30)\n  w = {X} compute(z, 70)\n  last = {X} {all_reduce('w')}"
    text = program(LOOPED, more=loop(body, trips=3))
    apart = work_of_step(run(text))
    monkeypatch.setattr(trace_writer, "MOST_EVENTS", 5)
    assert work_of_step(run(text)) == apart
    assert apart["vector_ops"] == 8 * 3 * 2 * 1000
    long = run(program(LOOPED, more=loop(f"  last = {X} compute(y, 10)", trips=100_000)))
    assert of_events(long, 0, "vector_ops") == {"around": 1e8}


def test_compute_has_the_scope_of_its_own_path_of_its_product_or_of_what_is_nearest():
    named = 'metadata={op_name="jit(f)/layer.mlp.down/mul"}'
    inside = f"""
product {{
  p.1 = {X} parameter(0)
  w.1 = {X} negate(p.1), metadata={{op_name="jit(f)/norm/neg"}}
  dot = f32[] dot(p.1, w.1), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}, {named.replace("down", "up")}
  ROOT b = {X} broadcast(dot), dimensions={{}}
}}
"""
    entry = f"""
  a = {X} compute(x, 10), {named}
  f = {X} fusion(a), kind=kOutput, calls=product, backend_config={{"estimated_cycles":"20"}}
  ROOT y = {X} compute(f, 30)
"""
    timeline = run(program(entry, more=inside))
    rows = timeline.events.drop_duplicates("hlo_op").set_index("hlo_op")
    assert rows["scope"].astype(str).to_dict() == {"a": "layer.mlp.down", "f": "layer.mlp.up", "y": "layer.mlp.up"}
    assert rows["matrix_flops"].to_dict() == {"a": 0, "f": 2000, "y": 0}


def test_arithmetic_that_cannot_be_read_counts_as_none_and_is_noted():
    entry = f"""
  ROOT y = {X} convolution(x, x), dim_labels=nonsense, backend_config={{"estimated_cycles":"20"}}
"""
    timeline = run(program(entry))
    assert work_of_step(timeline)["matrix_flops"] == 0
    assert "the arithmetic of y counts as none: line 1" in timeline.notes[0]
