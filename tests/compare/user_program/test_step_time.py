"""The modelled step of a program that is no run's."""

import json

import pytest

from compare.cli.hlo import main
from compare.diff.own.table import Table
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.user_program.saved_program import SavedProgram
from tests.places import ROOT

RUN = ROOT / "docs/example-run"

TEXT = r"""HloModule own, is_scheduled=true, num_partitions=8

%add (a: bf16[], b: bf16[]) -> bf16[] {
  %a = bf16[] parameter(0)
  %b = bf16[] parameter(1)
  ROOT %sum = bf16[] add(%a, %b)
}

ENTRY %main (p: bf16[8192,8192], q: bf16[8]) -> bf16[8192,8192] {
  %p = bf16[8192,8192]{1,0} parameter(0), metadata={op_name="weights[\'w\']"}
  %q = bf16[8]{0} parameter(1)
  %small = bf16[8]{0} all-reduce(%q), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=%add
  %copied = bf16[8192,8192]{1,0} copy(%p)
  ROOT %total = bf16[8192,8192]{1,0} all-reduce(%copied), channel_id=2, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=%add
}
"""  # noqa: E501

COPY_BYTES = 2 * 2 * 8192 * 8192
"""Read once and written once, two bytes each."""
COPY_NS = COPY_BYTES / (1640 * 0.83004)
"""v6e: 1,640 GB/s, of which copies reach 0.83004 (docs/model.md)."""


@pytest.fixture
def table() -> Table:
    saved = SavedProgram(text=TEXT, axes={"tp": 8})
    return Table(rows=tuple(collectives(read(TEXT), {"tp": 8})), axes={"tp": 8}, saved=saved)


def test_a_copy_takes_what_its_bytes_take_at_the_memorys_rate(table):
    step = table.timeline("v6e:2x4")
    (copy,) = [row for row in step.operations if row.opcode == "copy"]
    assert copy.memory_bytes == COPY_BYTES
    assert copy.time_ns == pytest.approx(COPY_NS, rel=2e-3)
    assert step.compute_ns == pytest.approx(COPY_NS, rel=2e-3)
    assert step.step_ns == pytest.approx(step.compute_ns + step.exposed_ns)


def test_the_longest_come_first_and_name_what_they_read(table):
    step = table.timeline("v6e:2x4")
    assert [row.opcode for row in step.operations[:2]] == ["all-reduce", "copy"]
    assert step.operations[1].tensors == ("weights['w']",)
    assert list(step.to_pandas().opcode[:2]) == ["all-reduce", "copy"]
    assert "1 × copy of bf16[8192,8192]" in str(step)
    assert "<table" in step._repr_html_()


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        ("", "for which TPU slice this program was compiled is not recorded"),
        ("v6e:4x4", "the program is for 8 devices, and v6e:4x4 has 16"),
        ("v6e:2x9", "v6e:2x9"),
    ],
)
def test_a_slice_that_is_not_known_or_does_not_fit_is_one_line(table, topology, said):
    with pytest.raises(ValueError, match=said) as error:
        table.timeline(topology)
    assert "\n" not in str(error.value)


def test_with_time_the_rows_with_most_bytes_come_first(tmp_path, capsys):
    path = tmp_path / "own.hlo"
    path.write_text(TEXT)
    assert main([str(path), "--axes", "tp=8", "--json"]) == 0
    assert [row["payload_bytes"] for row in json.loads(capsys.readouterr().out)] == [16, 2 * 8192 * 8192]
    assert main([str(path), "--axes", "tp=8", "--json", "--time", "--topology", "v6e:2x4"]) == 0
    payloads = [row["payload_bytes"] for row in json.loads(capsys.readouterr().out)["collectives"]]
    assert payloads == [2 * 8192 * 8192, 16]


def test_a_mesh_with_its_slice_says_for_what_the_program_was_compiled(tmp_path, capsys):
    path = tmp_path / "own.hlo"
    path.write_text(TEXT)
    assert main([str(path), "--mesh", "tp8@v6e:2x4", "--json", "--time"]) == 0
    assert json.loads(capsys.readouterr().out)["time"]["per_step"]["compute_ns"] == pytest.approx(COPY_NS, rel=2e-3)


def test_a_slice_without_a_time_is_refused(tmp_path, capsys):
    path = tmp_path / "own.hlo"
    path.write_text(TEXT)
    with pytest.raises(SystemExit):
        main([str(path), "--axes", "tp=8", "--topology", "v6e:2x4"])
    assert "--topology belongs to --time" in capsys.readouterr().err


def test_the_step_of_a_program_of_a_run_is_the_one_of_its_report(capsys):
    assert main([str(RUN / "jax/decode/tpu"), "--time", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["time"]["per_step"]
    report = json.loads((RUN / "report.json").read_text())
    times = report["phases"]["decode"]["arms"]["jax"]["timing"]["per_step"]
    assert (said["step_ns"], said["exposed_ns"]) == (times["step_ns"], times["exposed_ns"])
