"""Trip counts, against the loop run by hand."""

import pytest

from compare.hlo.counts.evaluator import Evaluator, iterations
from compare.hlo.dataflow.dataflow import CallContext
from compare.hlo.devices.groups import DeviceNumbering
from compare.hlo.text.module import read

CONDITIONS = {
    "LT": lambda counter, bound: counter < bound,
    "LE": lambda counter, bound: counter <= bound,
    "GT": lambda counter, bound: counter > bound,
    "GE": lambda counter, bound: counter >= bound,
    "NE": lambda counter, bound: counter != bound,
    "EQ": lambda counter, bound: counter == bound,
}


@pytest.mark.parametrize("direction", CONDITIONS)
@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
def test_the_count_is_that_of_the_loop_run(direction, step):
    for start in range(-4, 5):
        for bound in range(-4, 5):
            counter, count = start, 0
            while CONDITIONS[direction](counter, bound) and count < 50:
                counter, count = counter + step, count + 1
            expected = None if count == 50 else count
            assert iterations(start=start, step=step, bound=bound, direction=direction) == expected


def test_a_counter_that_stands_still_never_ends_a_loop():
    assert iterations(start=0, step=0, bound=3, direction="LT") is None
    assert iterations(start=3, step=0, bound=3, direction="LT") == 0


def program(*, start="constant(0)", step="add(i, one)", test="compare(c, bound), direction=LT", more="", config=""):
    return f"""HloModule m, num_partitions=8
copied {{
  p = s32[] parameter(0)
  ROOT q = s32[] copy(p)
}}
add {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT sum = s32[] add(a, b)
}}
less {{
  l = s32[] parameter(0)
  r = s32[] parameter(1)
  ROOT lt = pred[] compare(l, r), direction=LT
}}
body {{
  carry = (s32[], s32[], s32[]) parameter(0)
  g = s32[] get-tuple-element(carry), index=0
  i = s32[] copy(g)
  one = s32[] constant(1)
  two = s32[] constant(2)
  kept = s32[] get-tuple-element(carry), index=1
  data = s32[] get-tuple-element(carry), index=2
  next = s32[] {step}
  ROOT out = (s32[], s32[], s32[]) tuple(next, kept, data)
}}
condition {{
  carry.1 = (s32[], s32[], s32[]) parameter(0)
  c = s32[] get-tuple-element(carry.1), index=0
  k = s32[] get-tuple-element(carry.1), index=1
  d = s32[] get-tuple-element(carry.1), index=2
  bound = s32[] constant(6)
  {more}
  ROOT test = pred[] {test}
}}
ENTRY main {{
  data.1 = s32[] parameter(0)
  start = s32[] {start}
  four = s32[] constant(4)
  pass = s32[] copy(four)
  first = (s32[], s32[], s32[]) tuple(start, pass, data.1)
  ROOT loop = (s32[], s32[], s32[]) while(first), condition=condition, body=body{config}
}}
"""


def trips_of(text):
    module = read(text)
    return Evaluator(DeviceNumbering(1, 8)).trips.count(CallContext(module.entry), module.entry.root)


@pytest.mark.parametrize(
    ("changes", "trips"),
    [
        ({}, 6),
        ({"start": "constant(2)"}, 4),
        ({"start": "constant(9)"}, 0),
        ({"step": "add(two, i)"}, 3),
        ({"step": "subtract(i, one)", "start": "constant(9)", "test": "compare(c, bound), direction=GT"}, 3),
        ({"test": "compare(bound, c), direction=GE"}, 7),  # 6 >= c, for c = 0 … 6
        ({"test": "compare(c, bound), direction=NE"}, 6),
        ({"test": "compare(c, k), direction=LT"}, 4),  # the bound is carried and never changed
        ({"step": "call(i, one), to_apply=add"}, 6),
        ({"step": "fusion(i, two), kind=kLoop, calls=add"}, 3),
        ({"test": "fusion(c, bound), kind=kLoop, calls=less"}, 6),
        ({"more": "w = s64[] convert(c)\n  b = s64[] constant(5)", "test": "compare(w, b), direction=LT"}, 5),
        ({"config": ', backend_config={"known_trip_count":{"n":"6"}}'}, 6),
    ],
)
def test_a_counter_with_a_constant_start_step_and_bound_is_counted(changes, trips):
    assert trips_of(program(**changes)) == trips


@pytest.mark.parametrize(
    "changes",
    [
        {"start": "copy(data.1)"},  # an argument
        {"test": "compare(c, d), direction=LT"},  # until the data says so
        {"step": "multiply(i, two)"},
        {"step": "add(i, data)"},
        {"step": "add(i, i)"},
        {"test": "compare(c, bound), direction=GT", "start": "constant(7)"},  # upwards, away from its bound
        {
            "more": "t = pred[] compare(c, bound), direction=LT\n  u = pred[] compare(d, bound), direction=LT",
            "test": "and(t, u)",
        },
        {"start": "partition-id()"},  # another count on each device
    ],
)
def test_anything_else_is_unknown(changes):
    assert trips_of(program(**changes)) is None


HANDED_ON = {
    "copy": "{name} = s32[] copy({of})",
    "asynchronous copy": """{name}-start = (s32[], s32[], u32[]) copy-start({of})
  {name} = s32[] copy-done({name}-start)""",
    "wrapped copy": """{name}-start = ((s32[]), s32[], u32[]) async-start({of}), calls=copied
  {name} = s32[] async-done({name}-start)""",
    "copy that is updated": """{name}-start = ((s32[]), s32[], u32[]) async-start({of}), calls=copied
  {name}-update = ((s32[]), s32[], u32[]) async-update({name}-start)
  {name} = s32[] async-done({name}-update)""",
    "call": "{name} = s32[] call({of}), to_apply=copied",
    "barrier in a tuple": """{name}-in = (s32[], s32[]) tuple({of}, {of})
  {name}-barrier = (s32[], s32[]) opt-barrier({name}-in)
  {name} = s32[] get-tuple-element({name}-barrier), index=1""",
}
"""How a compiler hands one number on."""


@pytest.mark.parametrize("how", HANDED_ON)
def test_a_counter_is_known_however_it_is_handed_on(how):
    def handed(name, of):
        return HANDED_ON[how].format(name=name, of=of)

    text = program(
        test="compare(seen, limit), direction=LT", more=handed("limit", "bound") + "\n  " + handed("seen", "c")
    )
    assert trips_of(text) == 6
    in_body = text.replace("i = s32[] copy(g)", handed("i", "g"))
    assert trips_of(in_body) == 6
    counted = in_body.replace("next = s32[] add(i, one)", "sum = s32[] add(i, one)\n  " + handed("next", "sum"))
    assert trips_of(counted) == 6
    started = counted.replace("tuple(start, pass, data.1)", "tuple(first-start, pass, data.1)")
    assert trips_of(started.replace("four =", handed("first-start", "start") + "\n  four =")) == 6


def test_the_slice_that_an_asynchronous_slice_makes_is_not_its_operand():
    table = """table = s32[4] constant({9, 9, 6, 9})
  cut-start = ((s32[4]), s32[1], u32[]) slice-start(table), slice={[2:3]}
  cut = s32[1] slice-done(cut-start)
  last = s32[] reshape(cut)"""
    assert trips_of(program(test="compare(c, last), direction=LT", more=table)) == 6


def narrow(dtype, *, start, step, test):
    """The program with a counter of another type, its numbers with it."""
    text = program(start=f"constant({start})", step=step, test=test)
    return text.replace("s32[]", f"{dtype}[]")


def runs(dtype, start, by, holds):
    """The loop run by hand, in the counter's own width."""
    bits = int(dtype[1:])
    low = -(1 << bits - 1) if dtype[0] == "s" else 0
    counter, seen, count = start, set(), 0
    while holds(counter):
        if counter in seen:
            return None
        seen.add(counter)
        counter, count = (counter + by - low) % (1 << bits) + low, count + 1
    return count


@pytest.mark.parametrize("direction", CONDITIONS)
@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize(("start", "by", "bound"), [(0, 1, 127), (0, 100, 120), (3, -1, 0), (120, 7, 5), (5, 60, 100)])
def test_a_counter_comes_round_in_its_own_width(direction, dtype, start, by, bound):
    text = narrow(
        dtype,
        start=start,
        step="add(i, two)" if by > 0 else "subtract(i, two)",
        test=f"compare(c, bound), direction={direction}",
    )
    text = text.replace("constant(2)", f"constant({abs(by)})").replace("constant(6)", f"constant({bound})")
    assert trips_of(text) == runs(dtype, start, by, lambda counter: CONDITIONS[direction](counter, bound))


def test_the_last_number_may_be_the_largest_of_its_type():
    full = narrow("u8", start=0, step="add(i, one)", test="compare(c, bound), direction=LE")
    for bound, trips in ((254, 255), (255, None)):
        assert trips_of(full.replace("constant(6)", f"constant({bound})")) == trips


def test_a_count_that_the_compiler_contradicts_is_not_believed():
    module = read(program(config=', backend_config={"known_trip_count":{"n":"5"}}'))
    values = Evaluator(DeviceNumbering(1, 8))
    frame = CallContext(module.entry)
    assert values.trips.count(frame, module.entry.root) is None
    assert values.trips.notes[frame, module.entry.root] == ("backend_config says 5 trips, condition and body say 6")


def test_a_count_that_nothing_else_tells_is_the_compiler_s_word():
    """Of a condition that reads data; the number is marked wherever it is shown."""
    config = ', backend_config={"known_trip_count":{"n":"80"}}'
    module = read(program(test="compare(c, d), direction=LT", config=config))
    values, frame = Evaluator(DeviceNumbering(1, 8)), CallContext(module.entry)
    assert values.trips.count(frame, module.entry.root) == 80
    assert values.trips.stated == {(frame, module.entry.root)}
