"""Lines of HLO alone, as TPU profiles carry them: what each tells, and that nothing is guessed."""

import pytest

from compare.hlo.collectives.single_line import read_line
from compare.hlo.text.errors import HloError

TILED = "{1,0:T(8,128)(2,1)}"
HALVES = ((0, 1), (2, 3))
IN_HALVES = "channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true"
CONTEXT = "u32[]{:S(2)}, u32[]{:S(2)}"

# One bf16[8,128] is 8 x 128 x 2 = 2048 bytes.
LINES = [
    (f"%all-reduce.1 = bf16[8,128]{TILED} all-reduce(bf16[8,128]{TILED} %fusion.1), {IN_HALVES}, to_apply=%add",
     "all-reduce", "whole", 2048, HALVES),
    ("all-reduce.1 = bf16[8,128] all-reduce(fusion.1), replica_groups=[2,2]<=[4], to_apply=add",
     "all-reduce", "whole", 2048, HALVES),
    (f"%r = (bf16[8,128], f32[4]) all-reduce(bf16[8,128] %a, f32[4] %b), {IN_HALVES}, to_apply=%add",
     "all-reduce", "whole", 2064, HALVES),
    (f"%g = bf16[16,128] all-gather(bf16[8,128] %a), {IN_HALVES}, dimensions={{0}}",
     "all-gather", "whole", 4096, HALVES),
    (f"%s = bf16[4,128] reduce-scatter(bf16[8,128] %a), {IN_HALVES}, dimensions={{0}}, to_apply=%add",
     "reduce-scatter", "whole", 2048, HALVES),
    (f"%s = bf16[4,128] reduce-scatter(%a), {IN_HALVES}, dimensions={{0}}, to_apply=%add",
     "reduce-scatter", "whole", 2048, HALVES),  # the result of each of a group of two, twice
    ("%s = bf16[4,128] reduce-scatter(%a), dimensions={0}, to_apply=%add", "reduce-scatter", "whole", None, None),
    ("%x = f32[8] ragged-all-to-all(%a, %b, %c, %d, %e, %f), replica_groups={}",
     "ragged-all-to-all", "whole", None, ()),
    (f"%p = (bf16[8,128], bf16[8,128], {CONTEXT}) collective-permute-start(bf16[8,128] %a), "
     "source_target_pairs={{0,1},{1,0}}", "collective-permute", "start", 2048, ((0, 1), (1, 0))),
    (f"%p = (bf16[8,128], bf16[8,128], {CONTEXT}) collective-permute-start(%a), source_target_pairs={{{{0,1}}}}",
     "collective-permute", "start", 2048, ((0, 1),)),
    (f"%d = bf16[8,128] collective-permute-done((bf16[8,128], bf16[8,128], {CONTEXT}) %p)",
     "collective-permute", "done", 2048, None),
    (f"%g = (bf16[8,128], bf16[16,128]) all-gather-start(%a), {IN_HALVES}, dimensions={{0}}",
     "all-gather", "start", 4096, HALVES),
    ("%d = bf16[4,128] reduce-scatter-done(((bf16[8,128]), bf16[4,128], u32[]) %s)",
     "reduce-scatter", "done", 2048, None),
    ('%all-gather.4.cloned.1.call-start = ((bf16[8,128], token[]), bf16[16,128]) call-start(%a, %t), '
     'async_execution_thread="sparsecore", to_apply=%called', "all-gather", "start", 4096, None),
    ("%fusion.5 = bf16[4,128] fusion(bf16[8,128] %a), kind=kCustom, calls=%all-reduce-scatter.3",
     "reduce-scatter", "whole", None, None),
    ("%async-collective-start.1 = (bf16[8], bf16[32], u32[]) fusion(%a), kind=kCustom, calls=%fused_computation.5",
     "?", "start", None, None),
    ("%async-collective-done.1 = bf16[32] fusion(%a), kind=kCustom, calls=%fused_computation.9",
     "?", "done", None, None),
    ("%a = bf16[8,128] all-to-all(%b), replica_groups=mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}, "
     "dimensions={0}", "all-to-all", "whole", 2048, ((0, 2), (1, 3))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "part", "payload", "groups"), LINES)
def test_what_a_line_tells(text, kind, part, payload, groups):
    line = read_line(text)
    assert (line.kind, line.part, line.payload_bytes, line.groups) == (kind, part, payload, groups)


def test_its_name_its_opcode_and_its_operands():
    line = read_line(f"ROOT %w.2 = (s32[], f32[8]{{0}}) while((s32[], f32[8]{TILED}) %tuple.1), condition=%c, body=%b")
    assert (line.name, line.opcode, line.operands, line.kind) == ("w.2", "while", ("tuple.1",), "")
    line = read_line("%t = f32[8] dynamic-slice(f32[8] %a, s32[] %b, /*index=2*/s32[] %c), dynamic_slice_sizes={8}")
    assert line.operands == ("a", "b", "c")


@pytest.mark.parametrize(
    "text",
    [
        "%broadcast_all-reduce = f32[8] fusion(f32[] %a), kind=kLoop, calls=%fused_computation",
        "%all-reduce.fusion = f32[8] fusion(f32[] %a), kind=kLoop, calls=%fused_computation.1",
        "%copy-start = (f32[8], f32[8], u32[]) copy-start(%a)",
        '%gather.2.call-start = ((f32[8]), f32[8]) call-start(%a), async_execution_thread="sparsecore", to_apply=%c',
        '%all-gathered = f32[8] custom-call(%a), custom_call_target="all-gather"',
        "%async_collective_fusion.3 = f32[8] fusion(%a), kind=kOutput, calls=%async_collective_fusion.1",
        "%send.1 = (f32[8], u32[], token[]) send(%a, %t), channel_id=2, is_host_transfer=true",
    ],
)
def test_what_only_looks_like_a_collective_is_none(text):
    assert read_line(text).kind == ""


def test_transfers_between_slices():
    wire = '_xla_megascale_target="{1,2}x{0:3}",_xla_megascale_transfer_type="ALL_REDUCE"'
    send = read_line(
        "%sd = (f32[8], u32[], token[]) send(f32[8] %a, token[] %t), channel_id=2, is_host_transfer=true, "
        f"frontend_attributes={{{wire}}}"
    )
    assert (send.kind, send.part, send.payload_bytes, send.groups) == ("all-reduce", "start", 32, None)
    done = read_line(
        "%rd = (f32[8], token[]) recv-done(%rv), channel_id=1, is_host_transfer=true, "
        'frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime"}'
    )
    assert (done.kind, done.part, done.operands) == ("?", "done", ("rv",))


WHOLE = LINES[0][0].replace("{{0,1},{2,3}}", "[2,2]<=[2,2]T(1,0)")


@pytest.mark.parametrize("at", range(len(WHOLE)))
def test_a_line_that_is_cut_tells_less_and_never_something_else(at):
    cut = WHOLE[:at]
    if " all-reduce(" not in cut:
        with pytest.raises(HloError, match="not a line of HLO"):
            read_line(cut)
        return
    line = read_line(cut)
    assert (line.name, line.kind, line.part, line.payload_bytes) == ("all-reduce.1", "all-reduce", "whole", 2048)
    assert line.operands == (("fusion.1",) if "%fusion.1)" in cut else ())
    assert line.groups == (((0, 2), (1, 3)) if "T(1,0)" in cut else None)


@pytest.mark.parametrize(
    "text", ["", "fusion.3", "all-reduce", "jit_f(0)", "a = b", "= f32[8] add(x, y)", "x = {", "} = f32[] y("]
)
def test_what_is_no_line_is_refused_in_one(text):
    with pytest.raises(HloError) as refused:
        read_line(text)
    assert "\n" not in str(refused.value)
