"""What is under way beside the core, by arithmetic: local copies, chains of fusions, pairs across iterations, links."""

from dataclasses import replace

import pytest

from tests.compare.schedule.toys import (
    ALL_REDUCE_NS,
    PERMUTE_NS,
    ROUND,
    X,
    all_reduce,
    comms,
    program,
    run,
    step_ns,
)

READS = "reads {\n  f = f32[2500]{0} parameter(0)\n  ROOT g = f32[1]{0:S(1)} reduce(f, f), to_apply=sum\n}\n"


def reading(name, cycles):
    """A fusion that reads 10000 bytes, 100 ns of the memory's time."""
    config = f'backend_config={{"estimated_cycles":"{cycles}"}}'
    return f"  {name} = f32[1]{{0:S(1)}} fusion(v), kind=kLoop, calls=reads, {config}\n"


@pytest.mark.parametrize(
    ("cycles", "ends"),
    [
        ((125,), 140),  # 25 ns left of 125: 15 of 40 to go
        ((100,), 140),  # nothing left
        ((125, 125), 250),  # 25 ns left of each, and 40 are enough of 50
        ((100, 100), 240),
        ((500,), 500),
    ],
)
def test_a_local_copy_moves_in_what_the_core_leaves_of_the_memory(cycles, ends):
    """4000 bytes, 40 ns if the memory is free, beside fusions that keep it busy for 100 ns each."""
    entry = f"""
  w = f32[1000]{{0}} parameter(1)
  v = f32[2500]{{0}} parameter(2)
  s = ({X}, f32[1000]{{0}}, u32[]) copy-start(w)
{"".join(reading(f"y{at}", each) for at, each in enumerate(cycles))}  ROOT d = {X} copy-done(s)
"""
    assert step_ns(run(program(entry, more=READS))) == ends


GLOBAL = "channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true"
GATHER = GLOBAL + ', dimensions={0}, frontend_attributes={chain_id="4"}'
PART, WHOLE = "f32[1000]{0}", "f32[4000]{0}"
CHAIN = f"""
starts {{
  q = {PART} parameter(0)
  ag1 = {WHOLE} all-gather(q), {GATHER}
  ROOT begin = ({PART}, {WHOLE}, u32[]) custom-call(ag1), custom_call_target="AsyncCollectiveStart"
}}
carries {{
  q2 = {PART} parameter(0)
  b2 = {WHOLE} parameter(1)
  m2 = {PART} parameter(2)
  n2 = {PART} negate(m2)
  ag2 = {WHOLE} all-gather(q2), {GATHER}
  ROOT t2 = ({PART}, {PART}, {WHOLE}, {WHOLE}) tuple(n2, q2, b2, ag2)
}}
ends {{
  q3 = {PART} parameter(0)
  b3 = {WHOLE} parameter(1)
  ag3 = {WHOLE} all-gather(q3), {GATHER}
  ROOT end = {WHOLE} custom-call(q3, b3, ag3), custom_call_target="AsyncCollectiveDone"
}}
"""


def test_the_fusions_of_a_chain_do_not_move_the_buffers_that_they_hand_on():
    """A gather of 16000 bytes over a line: 100 + 3 · 10 + 3/4 · 1600 ns.  Beside it 4000 bytes are read and written, in
    80 ns; the parts and the whole lie in memory too, and would take 440 more."""
    entry = f"""
  p = {PART} parameter(1)
  f1 = ({PART}, {WHOLE}, u32[]) fusion(p), kind=kCustom, calls=starts
  a = {PART} get-tuple-element(f1), index=0
  b = {WHOLE} get-tuple-element(f1), index=1
  f2 = ({PART}, {PART}, {WHOLE}, {WHOLE}) fusion(a, b, p), kind=kOutput, calls=carries
  c = {PART} get-tuple-element(f2), index=1
  d = {WHOLE} get-tuple-element(f2), index=3
  ROOT f3 = {WHOLE} fusion(c, d), kind=kCustom, calls=ends
"""
    timeline = run(program(entry, more=CHAIN))
    computed = timeline.events[timeline.events["role"] == "compute"]
    assert computed[["hlo_op", "start_ns", "duration_ns"]].values.tolist() == [["f2", 0, 80]]
    assert comms(timeline) == [("f1", 0, 1330, 1330 - 80)]


def test_a_done_ends_what_began_before_the_loop_or_in_the_iteration_before():
    """Each window begins when the one before has ended, 500 ns of compute in each but the last."""
    carry = f"(s32[], {X}, {X})"
    begun = all_reduce("k").replace("all-reduce(", "all-reduce-start(")
    more = f"""
test {{
  c0 = {carry} parameter(0)
  i0 = s32[] get-tuple-element(c0), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i0, n), direction=LT
}}
body {{
  c = {carry} parameter(0)
  i = s32[] get-tuple-element(c), index=0
  y = {X} get-tuple-element(c), index=1
  under.way = {X} get-tuple-element(c), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  k = {X} compute(y, 500)
  d = {X} all-reduce-done(under.way)
  s = {X} {begun}
  ROOT again = {carry} tuple(next, k, s)
}}
"""
    entry = f"""
  zero = s32[] constant(0)
  s0 = {X} {begun.replace("(k)", "(x)")}
  start = {carry} tuple(zero, x, s0)
  around = {carry} while(start), condition=test, body=body
  last = {X} get-tuple-element(around), index=2
  ROOT d0 = {X} all-reduce-done(last)
"""
    timeline = run(program(entry, more=more))
    short = ALL_REDUCE_NS - 500
    assert comms(timeline) == [
        ("s0", 0, ALL_REDUCE_NS, short),
        ("s", ALL_REDUCE_NS, ALL_REDUCE_NS, short),
        ("s", 2 * ALL_REDUCE_NS, ALL_REDUCE_NS, short),
        ("s", 3 * ALL_REDUCE_NS, ALL_REDUCE_NS, ALL_REDUCE_NS),
    ]
    assert step_ns(timeline) == 4 * ALL_REDUCE_NS
    assert timeline.notes == ()


def branch(name, cycles):
    """A computation that computes for so long, one after the other."""
    steps = [f"  {name}{at + 1} = {X} compute({name}{at}, {each})" for at, each in enumerate(cycles)]
    steps = [f"  {name}0 = {X} parameter(0)", *steps, f"  ROOT {name}.end = {X} bitcast({name}{len(cycles)})"]
    return "\n".join([f"{name} {{", *steps, "}", ""])


def late(*odd, even=()):
    """Odd devices compute for so many cycles, even ones do nothing."""
    return branch("late", odd) + branch("early", even)


LATE = f"""
  id = u32[] partition-id()
  one = u32[] constant(1)
  bit = u32[] and(id, one)
  odd = pred[] compare(bit, one), direction=EQ
  y = {X} conditional(odd, x, x), true_computation=late, false_computation=early
"""
SUMS = all_reduce("y", groups="{{0,2},{1,3},{4,6},{5,7}}").replace("channel_id=1", "channel_id=2")
SUM_LATENCY_NS, SUM_NS = 100 + 2 * 2 * 10, 8000 / 10
"""The link in the middle of a line carries the 4000 bytes of both its groups."""


@pytest.mark.parametrize(
    ("cycles", "permuted"),
    [
        (10000, 10000 + PERMUTE_NS),
        (500, SUM_LATENCY_NS + SUM_NS + 400),  # it asks at 500, for 610; the links are taken until 940
    ],
)
def test_who_waits_for_a_late_device_does_not_keep_its_link_from_others(cycles, permuted):
    """Odd devices come late to a permute from the even ones, which meanwhile sum over the same links."""
    entry = f"""{LATE}
  s = ({X}, {X}, u32[], u32[]) collective-permute-start(y), channel_id=1, source_target_pairs={{{{0,1}},{{2,3}},{{4,5}},{{6,7}}}}
  r = {X} {SUMS}
  d = {X} collective-permute-done(s)
  ROOT all = ({X}, {X}) tuple(r, d)
"""  # noqa: E501
    timeline = run(program(entry, more=late(cycles)))
    summed = SUM_LATENCY_NS + SUM_NS
    assert comms(timeline, 0)[1] == ("r", 0, summed, summed)
    assert comms(timeline, 0)[0][:3] == ("s", 0, permuted)


def test_who_asks_at_the_same_time_goes_in_the_order_of_the_text():
    """Odd devices add 0.11 · 10 and 0.11 · 20, which is a little more than the 0.11 · 30 of even ones."""
    entry = f"""{LATE}
  a = ({X}, {X}, u32[], u32[]) collective-permute-start(y), channel_id=1, source_target_pairs={{{{1,3}}}}
  b = ({X}, {X}, u32[], u32[]) collective-permute-start(y), channel_id=2, source_target_pairs={{{{0,2}}}}
  da = {X} collective-permute-done(a)
  db = {X} collective-permute-done(b)
  ROOT all = ({X}, {X}) tuple(da, db)
"""
    timeline = run(
        program(entry, more=late(10, 20, even=(30,))), mesh="tp8@v4:2x2x1", hardware=replace(ROUND, cycle_ns=0.11)
    )
    ends = [{name: start + ns for name, start, ns, _ in comms(timeline, device)} for device in (1, 0)]
    assert 0.11 * 10 + 0.11 * 20 > 0.11 * 30
    assert (ends[0]["a"], ends[1]["b"]) == (pytest.approx(3.3 + PERMUTE_NS), pytest.approx(3.3 + PERMUTE_NS + 400))


def test_groups_of_one_collective_share_their_links_whenever_they_come():
    """The two devices of each of 4 chips are in two groups; a link of the ring carries 2 times 3/4 of 4000 bytes."""
    sums = all_reduce("y", groups="{{0,2,4,6},{1,3,5,7}}").replace("channel_id=1", "channel_id=2")
    timeline = run(program(f"{LATE}  ROOT r = {X} {sums}", more=late(500)), mesh="tp8@v4:2x2x1")
    took = 100 + 6 * 10 + 2 * 3 / 4 * 4000 / 10
    assert [comms(timeline, device) for device in (0, 1)] == [[("r", 0, took, took)], [("r", 500, took, took)]]


def test_only_those_whose_links_are_taken_wait_for_them():
    """A gather of 32000 bytes goes round the block of 2 x 4, and across it at both ends only: 100 + 7 · 10 + 7/8 / 2 of
    the bytes.  The sums of the pairs in between cross it meanwhile, those at the ends after it."""
    shape = "f32[8000]{0:S(1)}"
    gather = "channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true"
    entry = f"""
  s = ({X}, {shape}) all-gather-start(x), {gather}
  r = {X} {all_reduce("x", groups="{{0,4},{1,5},{2,6},{3,7}}").replace("channel_id=1", "channel_id=2")}
  d = {shape} all-gather-done(s)
  ROOT all = ({X}, {shape}) tuple(r, d)
"""
    timeline = run(program(entry))
    ends = {
        device: dict((name, start + duration) for name, start, duration, _ in comms(timeline, device))["r"]
        for device in range(8)
    }
    between, after = 100 + 2 * 10 + 400, 100 + 7 * 10 + 1400 + 400
    assert ends == {0: after, 1: between, 2: between, 3: after, 4: after, 5: between, 6: between, 7: after}
    assert timeline.stands_for == {0: (0, 3, 4, 7), 1: (1, 2, 5, 6)}
