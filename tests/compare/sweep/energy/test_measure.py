"""The energy of a sweep's programs, from reports and tables alone."""

import gzip
import json
import shutil

import pytest

from compare.cli.options.sweep_options import sweep_parser
from compare.cli.options.sweep_request import combinations
from compare.report.model.report import Report
from compare.sweep.combination import Combination
from compare.sweep.energy.energy_lines import UNFIT, energy_lines, has_energy
from compare.sweep.energy.measure import add_energy, is_same_program, measure_programs
from compare.sweep.sweep import CaseEnd, read_result
from compare.sweep.sweep_report import check_sweep
from tests.compare.sweep.energy.test_kernels import RUN, example

TOO_LARGE = (
    "llama-3.1-8b on tp1 needs 18.1 GB on each device, but a v5e:1x1 device has 17.2 GB; no single slice of this "
    "generation fits"
)


def make_sweep(folder):
    """A sweep of the documentation's run, and of a case that does not fit."""
    shutil.copytree(RUN, folder / "run", ignore=shutil.ignore_patterns("jax", "torchxla", "figures"))
    (case,) = combinations(sweep_parser().parse_args(["--meshes", "tp4pp2"]))
    row = read_result(case, CaseEnd("done", at=folder / "run"))
    refused = read_result(Combination(model="llama-3.1-8b", mesh="tp1", refused=TOO_LARGE), None)
    return {
        "schema": 1,
        "sentence": "",
        "asked": {},
        "arms": {"jax": "JAX", "torchxla": "TorchXLA"},
        "results": [row, refused],
    }


def test_watts_of_the_chips_are_those_of_the_mesh():
    report, events = example()
    for (phase, arm, cell), energy in measure_programs(report, events):
        program = next(p for p in report.phases[phase].arms[arm] if p.cell == cell)
        assert len(energy["chips"]) == 8
        watts = sum(chip["watts"] for chip in energy["chips"])
        assert watts == pytest.approx(program.energy.mean_w, rel=1e-9)
        assert energy["mean_w"] * 8 == pytest.approx(program.energy.mean_w, rel=1e-12)
        hops = sum(program.energy.amounts[verdict]["ici_byte_hops"] for verdict in program.energy.amounts)
        assert sum(chip["ici_byte_hops"] for chip in energy["chips"]) == pytest.approx(hops, rel=1e-9)
        times = program.timing.per_step
        assert [chip["use"] for chip in energy["chips"]] == [pytest.approx(times.compute_ns / times.step_ns)] * 8


PROGRAM = """HloModule jit_f, is_scheduled=true

FileNames
1 "layers.py"

%body (p.1: f32[8]) -> f32[8] {
  %p.1 = f32[8]{0} parameter(0)
  ROOT %add.7 = f32[8]{0} add(%p.1, %p.1), metadata={op_name="jit(f)/a{b}" source_line=3}
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %call.3 = f32[8]{0} call(%x), to_apply=%body
}
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("", "", True),
        ("add.7", "add.19", True),
        ("source_line=3", "source_line=4 stack_frame_id=2", True),
        ("layers.py", "other.py", True),
        ("add(", "multiply(", False),
        ("call(%x)", "call(%p.1)", False),
    ],
)
def test_a_program_is_the_same_but_for_names_metadata_and_source_lines(tmp_path, old, new, same):
    for name, text in (("left", PROGRAM), ("right", PROGRAM.replace(old, new) if old else PROGRAM)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "optimized.hlo.gz").write_bytes(gzip.compress(text.encode()))
    assert is_same_program(tmp_path / "left", tmp_path / "right") is same


def test_a_program_that_cannot_be_read_is_not_the_same(tmp_path):
    assert not is_same_program(tmp_path, tmp_path)
    (tmp_path / "optimized.hlo.gz").write_bytes(b"\x1f\x8btorn")
    (tmp_path / "right").mkdir()
    (tmp_path / "right/optimized.hlo.gz").write_bytes(gzip.compress(b"ENTRY"))
    assert not is_same_program(tmp_path, tmp_path / "right")


def test_devices_that_are_not_known_make_no_heat_map():
    report, events = example()
    document = report.to_json()
    for phase in document["phases"].values():
        for arm in phase["arms"].values():
            arm["timing"]["per_device"][0] |= {"stands_for": 4, "members": []}
    rows = dict(measure_programs(Report.from_json(document), events))
    assert rows["decode", "jax", "tpu"]["chips"] == []


def test_each_default_program_is_a_line_and_the_best_has_efficiency_1(tmp_path):
    sweep = add_energy(make_sweep(tmp_path), tmp_path)
    check_sweep(json.loads(json.dumps(sweep)))
    assert has_energy(sweep)
    lines = energy_lines(sweep)
    assert [(line.layout, line.phase, line.title, line.missing) for line in lines] == [
        ("tp4pp2", "prefill", "JAX", ""),
        ("tp4pp2", "prefill", "TorchXLA", ""),
        ("tp4pp2", "decode", "JAX", ""),
        ("tp4pp2", "decode", "TorchXLA", ""),
        ("tp1", "", "", UNFIT),
    ]
    assert [line.efficiency for line in lines[::2]] == [1, 1, None]
    jax, torch = lines[2].energy, lines[3].energy
    assert lines[3].efficiency == pytest.approx(torch["tokens_per_j"] / jax["tokens_per_j"])
    assert jax["tokens_per_s"] == pytest.approx(8 / lines[2].step_ns * 1e9)
    assert jax["low_per_token_j"] < jax["per_token_j"] < jax["high_per_token_j"]
    assert sum(jax["by_component_j"].values()) == pytest.approx(jax["step_j"])


def test_a_run_folder_without_tables_or_with_a_torn_report_keeps_its_row(tmp_path):
    sweep = make_sweep(tmp_path)
    (tmp_path / "run/tables/events.parquet").write_bytes(b"PAR1 torn")
    assert add_energy(sweep, tmp_path) == sweep
    (tmp_path / "run/report.json").write_text("{")
    assert not has_energy(add_energy(sweep, tmp_path))
