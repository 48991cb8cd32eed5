"""Results that fit their operands by the rules of XLA's verifier, and those that don't, which bytes would follow."""

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

GROUPS = "channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true"
PAIRS = "channel_id=1, source_target_pairs={{0,1},{1,0}}"


def rows(line: str, *more: str, operand: str = "f32[8]", header: str = ", num_partitions=8"):
    """Of a program with this collective of `p`, and of `q`, which is of s32[4]."""
    lines = "\n".join(f"  {each}" for each in (line, *more))
    return collectives(
        read(f"""HloModule m{header}

add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}}

ENTRY main {{
  p = {operand} parameter(0)
  q = s32[4] parameter(1)
{lines}
}}
"""),
        {},
    )


def bytes_of(line: str, **options):
    (row,) = rows(line, **options)
    return row.payload_bytes


FIT = [
    (f"all-gather(p), {GROUPS}, dimensions={{0}}", "f32[32]", 128),
    (f"all-gather(p), {GROUPS}", "f32[32]", 128),
    (f"all-gather(p), {GROUPS}, dimensions={{0}}", "f32[30]", 120),  # of 32, of which 2 are padding
    (f"all-gather(p, q), {GROUPS}, dimensions={{0}}", "(f32[32], s32[16])", 192),
    (
        "all-gather(p), channel_id=1, replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}}, use_global_device_ids=true, "
        "dimensions={0}",
        "f32[8]",
        32,
    ),
    (f"all-reduce(p), {GROUPS}, to_apply=add", "f32[8]", 32),
    (f"all-reduce(p), {GROUPS}, to_apply=add", "bf16[8]", 32),  # libtpu chooses the precision of a sum
    (f"all-reduce(p, q), {GROUPS}, to_apply=add", "(f32[8], s32[4])", 48),
    (f"reduce-scatter(p), {GROUPS}, dimensions={{0}}, to_apply=add", "f32[2]", 32),
    (f"reduce-scatter(p, q), {GROUPS}, dimensions={{0}}, to_apply=add", "(f32[2], s32[1])", 48),
    (f"all-to-all(p), {GROUPS}, dimensions={{0}}", "f32[8]", 32),
    (f"all-to-all(p, p, p, p), {GROUPS}", "(f32[8], f32[8], f32[8], f32[8])", 128),
    (f"collective-permute(p), {PAIRS}", "f32[8]", 32),
    ("collective-broadcast(p), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}", "f32[8]", 32),
]


@pytest.mark.parametrize(("collective", "result", "payload"), FIT)
def test_what_fits_is_read(collective, result, payload):
    assert bytes_of(f"ROOT c = {result} {collective}") == payload


STARTS = [
    (f"all-gather-start(p), {GROUPS}, dimensions={{0}}", "(f32[8], f32[32])", 128),
    (f"all-gather-start(p, q), {GROUPS}, dimensions={{0}}", "((f32[8], s32[4]), (f32[32], s32[16]))", 192),
    (f"all-reduce-start(p), {GROUPS}, to_apply=add", "f32[8]", 32),
    (f"all-reduce-start(p, q), {GROUPS}, to_apply=add", "(f32[8], s32[4])", 48),
    (f"all-reduce-start(p), {GROUPS}, to_apply=add", "((f32[8]), f32[8], u32[])", 32),
    (f"all-reduce-start(p), {GROUPS}, to_apply=add", "(f32[8], f32[8])", 32),
    (f"collective-permute-start(p), {PAIRS}", "(f32[8], f32[8], u32[], u32[])", 32),
    (f"reduce-scatter-start(p), {GROUPS}, dimensions={{0}}, to_apply=add", "((f32[8]), f32[2])", 32),
]


@pytest.mark.parametrize(("collective", "result", "payload"), STARTS)
def test_a_start_s_tuple_is_read(collective, result, payload):
    kind = collective.partition("-start")[0]
    (row,) = rows(f"s = {result} {collective}", f"ROOT d = f32[8] {kind}-done(s)")
    assert row.payload_bytes == payload


MISFITS = [
    (f"all-gather(p), {GROUPS}, dimensions={{0}}", "f32[8000]", r"f32\[8000\] does not fit its operand f32\[8\]"),
    (f"all-gather(p), {GROUPS}, dimensions={{9}}", "f32[32]", r"dimensions=\{9\} is no dim of its operand"),
    (f"all-gather(p), {GROUPS}, dimensions={{0}}", "f32[8]", "does not fit"),
    (f"all-gather(p), {GROUPS}, dimensions={{0}}", "f32[32,1]", "does not fit"),
    (f"all-gather(p), {GROUPS}, dimensions={{0}}", "s32[32]", "its operand is f32 and its result s32"),
    (f"all-gather(p, q), {GROUPS}, dimensions={{0}}", "(f32[32], s32[4])", "does not fit"),
    (f"all-gather(p, q), {GROUPS}, dimensions={{0}}", "f32[32]", "2 operands and 1 results are not one to one"),
    (f"all-reduce(p), {GROUPS}, to_apply=add", "f32[9]", "does not fit"),
    (f"all-reduce(p), {GROUPS}, to_apply=add", "u32[8]", "its operand is f32 and its result u32"),
    (f"all-reduce(p, q), {GROUPS}, to_apply=add", "(f32[8], s32[8])", "does not fit"),
    (f"reduce-scatter(p), {GROUPS}, dimensions={{0}}, to_apply=add", "f32[8]", "does not fit"),
    (f"reduce-scatter(p), {GROUPS}, dimensions={{1}}, to_apply=add", "f32[2]", "no dim of its operand"),
    (f"all-to-all(p), {GROUPS}, dimensions={{0}}", "f32[32]", "does not fit"),
    (f"collective-permute(p), {PAIRS}", "f32[4]", "does not fit"),
    ("collective-broadcast(p), channel_id=1, replica_groups={{0,1},{2,3}}", "f32[16]", "does not fit"),
]


@pytest.mark.parametrize(("collective", "result", "said"), MISFITS)
def test_what_does_not_fit_names_its_line(collective, result, said):
    with pytest.raises(HloError, match=rf"^line 12: .*{said}"):
        rows(f"ROOT c = {result} {collective}")


def test_without_a_number_of_devices_a_gather_of_no_groups_may_have_any_size():
    """As XLA, which skips the check where the count of devices is its default, 1."""
    assert bytes_of("ROOT c = f32[32] all-gather(p), replica_groups={}, dimensions={0}", header="") == 128
