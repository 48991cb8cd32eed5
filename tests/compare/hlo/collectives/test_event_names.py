"""The names under which a profile shows the executions of each collective, in programs of a few lines."""

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.collectives.event_names import clone_of, container_names, map_event_names
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read
from tests.compare.hlo.corpus_programs import load
from tests.compare.hlo.emission.test_emission_form import ADD, CHAIN, CHAINED, GROUPS, SCATTER


def parts(*lines, computations=""):
    """Row and part of every name."""
    body = "\n  ".join(("p = f32[8] parameter(0)", *lines[:-1], "ROOT " + lines[-1]))
    module = read(f"HloModule m, num_partitions=4\n{ADD}{computations}ENTRY main {{\n  {body}\n}}\n")
    return {
        name: (one.row.name, one.part) for name, one in map_event_names(module, collectives(module, {"tp": 4})).items()
    }


def test_a_synchronous_one_is_its_own_instruction():
    assert parts(f"r = f32[8] all-reduce(p), channel_id=1, {GROUPS}, to_apply=add") == {"r": ("r", "whole")}


def test_one_that_combines_several_operands_is_one_row():
    line = f"r = (f32[8], f32[8]) all-reduce(p, p), channel_id=1, {GROUPS}, to_apply=add"
    assert parts(line) == {"r": ("r", "whole")}


def test_a_start_and_its_done():
    started = f"s = f32[8] all-reduce-start(p), channel_id=1, {GROUPS}, to_apply=add"
    assert parts(started, "n = f32[8] negate(p)", "r = f32[8] all-reduce-done(s)") == {
        "s": ("s", "start"),
        "r": ("s", "done"),
    }


def test_an_async_wrapper_holds_its_collective_and_may_be_updated_in_between():
    lines = (
        "s = ((f32[8]), f32[2], u32[]) async-start(p), calls=called",
        "u = ((f32[8]), f32[2], u32[]) async-update(s)",
        "r = f32[2] async-done(u)",
    )
    assert parts(*lines, computations=SCATTER) == {
        "s": ("rs", "start"),
        "u": ("rs", "between"),
        "r": ("rs", "done"),
        "rs": ("rs", "inside"),
    }


def test_a_call_on_the_sparse_core():
    thread = 'async_execution_thread="sparsecore", to_apply=called'
    lines = (f"s = ((f32[8]), f32[2]) call-start(p), {thread}", "r = f32[2] call-done(s)")
    computations = SCATTER.removesuffix("}\n") + '}, execution_thread="sparsecore"\n'
    found = parts(*lines, computations=computations)
    assert found == {"s": ("rs", "start"), "r": ("rs", "done"), "rs": ("rs", "inside")}


def test_of_two_in_one_wrapper_the_wrapper_is_the_first_one():
    two = SCATTER.replace("ROOT rs", "rs").removesuffix("}\n")
    two += f"  ar = f32[8] all-reduce(q), channel_id=3, {GROUPS}, to_apply=add\n  ROOT t = (f32[2], f32[8]) tuple(rs, ar)\n}}\n"  # noqa: E501
    lines = (
        "s = ((f32[8]), (f32[2], f32[8]), u32[]) async-start(p), calls=called",
        "r = (f32[2], f32[8]) async-done(s)",
    )
    assert parts(*lines, computations=two) == {
        "s": ("rs", "start"),
        "r": ("rs", "done"),
        "rs": ("rs", "inside"),
        "ar": ("ar", "inside"),
    }


def test_a_fusion_is_executed_as_one_however_deep_the_collective_stands_in_it():
    inner = f"f.1 {{\n  q = f32[8] parameter(0)\n  ROOT ar = f32[8] all-reduce(q), channel_id=2, {GROUPS}, to_apply=add\n}}\n"  # noqa: E501
    outer = "f.2 {\n  o = f32[8] parameter(0)\n  ROOT g = f32[8] fusion(o), kind=kLoop, calls=f.1\n}\n"
    found = parts("h = f32[8] fusion(p), kind=kLoop, calls=f.2", computations=inner + outer)
    assert found == {"h": ("ar", "whole"), "g": ("ar", "inside"), "ar": ("ar", "inside")}


def test_a_call_and_a_loop_are_no_carriers_but_containers():
    text = (
        ADD
        + f"""body {{
  c = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  h = f32[8] get-tuple-element(c), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  r = f32[8] all-reduce(h), channel_id=1, {GROUPS}, to_apply=add
  ROOT out = (s32[], f32[8]) tuple(n, r)
}}
condition {{
  e = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(e), index=0
  end = s32[] constant(3)
  ROOT go = pred[] compare(j, end), direction=LT
}}
outer {{
  v = f32[8] parameter(0)
  ROOT a = f32[8] all-reduce(v), channel_id=2, {GROUPS}, to_apply=add
}}
ENTRY main {{
  w = f32[8] parameter(0)
  z = s32[] constant(0)
  k = f32[8] call(w), to_apply=outer
  first = (s32[], f32[8]) tuple(z, k)
  ROOT loop = (s32[], f32[8]) while(first), condition=condition, body=body, metadata={{op_name=" call("}}
}}
"""
    )
    module = read("HloModule m, num_partitions=4\n" + text)
    rows = collectives(module, {"tp": 4})
    assert {name: one.part for name, one in map_event_names(module, rows).items()} == {"r": "whole", "a": "whole"}
    assert container_names(module) == {"loop", "k"}


def test_an_async_fusion_starts_carries_and_ends():
    found = parts(*CHAINED, computations=CHAIN)
    inside = {name: ("ag1", "inside") for name in ("ag1", "ag2", "ag3")}
    assert found == {"f1": ("ag1", "start"), "f2": ("ag1", "beside"), "r": ("ag1", "done")} | inside


def test_a_transfer_between_slices_lasts_from_the_send_to_the_end_of_the_receive():
    wire = (
        'is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="a",'
        '_xla_megascale_target="{1,2}x{0:3}",_xla_megascale_transfer_type="ALL_REDUCE"}'
    )
    body = f"""ENTRY main {{
  p = f32[8] parameter(0)
  t = token[] after-all()
  rv = (f32[8], u32[], token[]) recv(t), channel_id=1, {wire}
  sd = (f32[8], u32[], token[]) send(p, t), channel_id=2, {wire}
  sdd = token[] send-done(sd), channel_id=2, is_host_transfer=true
  rvd = (f32[8], token[]) recv-done(rv), channel_id=1, is_host_transfer=true
  ROOT r = f32[8] get-tuple-element(rvd), index=0
}}
"""
    module = read("HloModule m, num_partitions=4\n" + body)
    rows = collectives(module, {"dcn": 2, "tp": 4})
    found = {name: (one.row.name, one.part) for name, one in map_event_names(module, rows).items()}
    assert found == {
        "sd": ("sd", "start"),
        "rvd": ("sd", "done"),
        "rv": ("sd", "between"),
        "sdd": ("sd", "between"),
    }


def test_a_done_that_a_loop_hands_its_start_to():
    text = f"""body {{
  c = (s32[], (f32[8], f32[32])) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  h = (f32[8], f32[32]) get-tuple-element(c), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  d = f32[32] all-gather-done(h)
  v = f32[8] slice(d), slice={{[0:8]}}
  s = (f32[8], f32[32]) all-gather-start(v), channel_id=1, {GROUPS}, dimensions={{0}}
  ROOT out = (s32[], (f32[8], f32[32])) tuple(n, s)
}}
condition {{
  e = (s32[], (f32[8], f32[32])) parameter(0)
  j = s32[] get-tuple-element(e), index=0
  end = s32[] constant(3)
  ROOT go = pred[] compare(j, end), direction=LT
}}
ENTRY main {{
  w = f32[8] parameter(0)
  z = s32[] constant(0)
  s0 = (f32[8], f32[32]) all-gather-start(w), channel_id=2, {GROUPS}, dimensions={{0}}
  first = (s32[], (f32[8], f32[32])) tuple(z, s0)
  loop = (s32[], (f32[8], f32[32])) while(first), condition=condition, body=body
  last = (f32[8], f32[32]) get-tuple-element(loop), index=1
  ROOT d0 = f32[32] all-gather-done(last)
}}
"""
    module = read("HloModule m, num_partitions=4\n" + text)
    found = {name: one.part for name, one in map_event_names(module, collectives(module, {"tp": 4})).items()}
    assert found == {"s": "start", "s0": "start", "d": "done", "d0": "done"}


def test_rows_of_another_program_are_refused():
    with pytest.raises(HloError, match="is of another program"):
        map_event_names(load("scan3").module, load("combined").rows)


@pytest.mark.slow
def test_thousands_of_collectives_each_have_their_event():
    line = f"  r%d = f32[8] all-reduce(r%d), channel_id=1, {GROUPS}, to_apply=add"
    many = "\n".join(line % (at, at - 1) for at in range(1, 2000))
    module = read(f"HloModule m, num_partitions=4\n{ADD}ENTRY main {{\n  r0 = f32[8] parameter(0)\n{many}\n}}\n")
    assert len(map_event_names(module, collectives(module, {"tp": 4}))) == 1999


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("all-reduce.5.clone", "all-reduce.5"),
        ("all-reduce.5.clone.1", "all-reduce.5"),
        ("all-reduce.5.clone3", "all-reduce.5"),
        ("all-reduce.5.remat2.1.clone.7", "all-reduce.5"),
        ("all-reduce.5.remat", "all-reduce.5"),
        ("all-reduce.5.cloned.1", "all-reduce.5"),
        ("all-reduce.5.clone.2..sunk.4", "all-reduce.5"),
        ("fusion.clone.1.remat", "fusion.clone.1"),
        ("all-reduce.5.1", None),
        ("all-reduce", None),
        ("all-reduce.5.remat_compressed", None),
        ("all-reduce.5.remat_uncompressed.1", None),
        ("other.clone", None),
    ],
)
def test_a_clone_is_traced_to_the_nearest_instruction_that_is_known(name, original):
    assert clone_of(name, {"all-reduce.5", "fusion.clone.1", "fusion"}) == original
