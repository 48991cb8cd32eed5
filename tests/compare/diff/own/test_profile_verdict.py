"""A profile judged without a run folder: times of each verdict, on a program whose bytes are counted by hand.

The trait: the profile carries its program as HLO protobuf in `/host:metadata`.
"""

import gzip
import json

import pytest

from compare.cli.trace import main
from meshes.process.command_line import run_command
from tests.compare.timeline.scenes import serialize
from tests.compare.timeline.spaces import Space, tpu

GROUPS = "replica_groups={{0,1,2,3}}, use_global_device_ids=true"
TEXT = f"""HloModule jit_decode, is_scheduled=true, num_partitions=4

add {{
  x = bf16[] parameter(0)
  y = bf16[] parameter(1)
  ROOT s = bf16[] add(x, y)
}}

ENTRY main {{
  x = bf16[8,1024]{{1,0}} parameter(0)
  w = bf16[1024,4096]{{1,0}} parameter(1)
  part = bf16[8,4096]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, metadata={{op_name="jit(f)/layer.mlp.down/dot"}}
  sum = bf16[8,4096]{{1,0}} all-reduce(part), channel_id=1, {GROUPS}, to_apply=add, metadata={{op_name="jit(f)/layer.mlp.down/psum"}}
  near = bf16[8,1024]{{1,0}} add(x, x), metadata={{op_name="jit(f)/layer.attention.core/add"}}
  whole = bf16[8,4096]{{1,0}} all-gather(near), channel_id=2, {GROUPS}, dimensions={{1}}, metadata={{op_name="jit(f)/layer.attention.core/all_gather"}}
  ROOT out = bf16[8,4096]{{1,0}} add(sum, whole)
}}
"""  # noqa: E501
"""Of one layer of Llama-3.1-8B (embed 4096) on tp4, decode, batch 8: the sum of the MLP, which the plan has, a gather
of attention, which it has not."""


def profile(*, carried=True):
    """A step of 100 ns: 60 of compute, the sum 10, the gather 20, none of it hidden."""
    space = Space()
    for device in range(4):
        ops = [("part", 0, 50), ("sum", 50, 10), ("near", 60, 10), ("whole", 70, 20)]
        tpu(space, device, ops, XLA_Modules=[("jit_decode(17)", 0, 100)])
    if carried:
        space.programs({"jit_decode(17)": serialize(TEXT)})
    return space


WORDS = ["--mesh", "tp4", "--model", "llama-3.1-8b", "--phase", "decode", "--batch", "8", "--json"]


def verdict(words, capsys):
    assert main(words) == 0
    return json.loads(capsys.readouterr().out)["verdict"]


def check(found):
    """Payloads of 8 · 4096 · 2 = 65,536 bytes: the sum sends 2 · 3/4 of it, the gather 3/4."""
    assert {name: times["exposed_ns"] for name, times in found["by_verdict"].items()} == {
        "inherent": 10,
        "inflated": 0,
        "induced": 20,
        "unknown": 0,
    }
    assert (found["totals"]["inherent"], found["totals"]["induced"]) == (98_304, 49_152)
    assert [(row["collective"], row["scope"], row["verdict"], row["exposed_ns"]) for row in found["collectives"]] == [
        ("whole", "layer.attention.core", "induced", 20),
        ("sum", "layer.mlp.down", "inherent", 10),
    ]


def test_the_program_that_a_profile_carries_is_judged(tmp_path, capsys):
    found = verdict([str(profile().write(tmp_path)), *WORDS], capsys)
    check(found)
    assert found["contract"] == "llama-3.1-8b, decode, batch 8, seq 1024, on tp4"


def test_a_program_beside_the_profile_is_judged_alike(tmp_path, capsys):
    (tmp_path / "step.hlo.gz").write_bytes(gzip.compress(TEXT.encode(), mtime=0))
    path = profile(carried=False).write(tmp_path)
    check(verdict([str(path), *WORDS, "--hlo", str(tmp_path / "step.hlo.gz")], capsys))


def test_two_programs_that_share_names_of_collectives_are_told_apart(tmp_path, capsys):
    space = profile()
    for plane in space.planes[:4]:
        plane.lines[0].event("sum", 200, 5)
        plane.lines[1].event("jit_other(18)", 200, 10)
    metadata = space.planes[-1]
    metadata.metadata_id(
        "jit_other(18)", "jit_other(18)", {"Hlo Proto": serialize(TEXT.replace("jit_decode", "jit_other"))}
    )
    check(verdict([str(space.write(tmp_path)), *WORDS], capsys))


def test_the_terminal_says_what_of_the_exposed_time_the_plan_needs(tmp_path, capsys):
    main([str(profile().write(tmp_path)), *WORDS[:-1]])
    words = " ".join(capsys.readouterr().out.split())
    assert "jit_decode against llama-3.1-8b, decode, batch 8, seq 1024, on tp4: exposed communication of an" in words
    assert "execution: 10 ns inherent, 20 ns induced" in words
    assert "all-gather over tp layer.attention.core induced, full-replication" in words
    assert "Nothing serves all-reduce over tp of layer.attention.out, 32 ×" in words


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--model", "llama-3.1-8b", "--axes", "tp=4"], "a contract needs the mesh in wirediff notation"),
        (["--model", "llama-9", "--mesh", "tp4"], "llama-9"),
        (WORDS[:-1], "the profile does not carry the program 'jit_decode(17)'; give its compiled HLO with --hlo FILE"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(tmp_path, capsys, words, complaint):
    path = profile(carried=False).write(tmp_path)
    with pytest.raises(SystemExit) as caught:
        run_command(main, [str(path), *words])
    printed = capsys.readouterr()
    assert (caught.value.code, printed.out) == (2, "")
    assert complaint in printed.err
