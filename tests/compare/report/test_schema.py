"""report.json keeps to its JSON Schema: reports made by hand, and what the judge makes of compiled text."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import compare.report
from compare.report.build import build_report
from compare.report.model.about import About, Parameter
from compare.report.model.report import SCHEMA
from compare.report.programs import ProgramResult, judge_programs
from meshes.case import Case
from tests.compare.render.from_json import draw
from tests.compare.render.timings import add_times

Report = dict[str, Any]

SHIPPED = json.loads((Path(compare.report.__file__).parent / "report.schema.json").read_text(encoding="utf-8"))

HLO = """\
HloModule toy, is_scheduled=true, num_partitions=2

%add (x: bf16[], y: bf16[]) -> bf16[] {
  %x = bf16[] parameter(0)
  %y = bf16[] parameter(1)
  ROOT %sum = bf16[] add(%x, %y)
}

ENTRY %main (p: bf16[8,128]) -> bf16[8,256] {
  %p = bf16[8,128]{1,0} parameter(0)
  %down = bf16[8,128]{1,0} all-reduce(%p), channel_id=1, replica_groups={{0,1}}, to_apply=%add, metadata={op_name="jit(f)/layer.mlp.down/dot"}
  %half = bf16[8,128]{1,0} negate(%down), metadata={op_name="jit(f)/layer.attention.core/neg"}
  ROOT %whole = bf16[8,256]{1,0} all-gather(%half), channel_id=2, replica_groups={{0,1}}, dimensions={1}, metadata={op_name="jit(f)/layer.attention.core/dot"}
}
"""  # noqa: E501


@pytest.fixture
def judged() -> Report:
    """What the judge makes of two arms of a small mesh, compiled and run, a program of each kind missing."""
    case = Case.read("tp2", model_name="tiny", phases=("decode",))
    about = About(
        partitioner="gspmd", versions={"jaxlib": "0.10.2"}, loop="scan", attention="idiomatic", style="pinned",
        parameters=(Parameter(index=0, role="input"),),
    )  # fmt: skip
    results = [
        ProgramResult(arm="jax", phase="decode", cell="tpu", status="ok", about=about, hlo=HLO),
        ProgramResult(arm="torchxla", phase="decode", cell="tpu", status="ok", about=about, hlo=HLO),
        ProgramResult(arm="torchxla", phase="decode", cell="tpu+einsum", status="crashed", error="signal 6"),
        ProgramResult(arm="jax", phase="decode", cell="cpu", status="ok", about=about, hlo=HLO, executed=case),
        ProgramResult(arm="torchxla", phase="decode", cell="cpu", status="timeout", error="30 s", executed=case),
    ]
    programs = judge_programs(case, results)
    return build_report(case, programs, titles={"jax": "JAX", "torchxla": "TorchXLA"}).to_json()


def test_the_schema_is_one_and_has_the_report_s_version() -> None:
    jsonschema.Draft202012Validator.check_schema(SHIPPED)
    assert SHIPPED["properties"]["schema"]["const"] == SCHEMA


def test_reports_keep_to_it(report: Report, failed_report: Report) -> None:
    jsonschema.validate(report, SHIPPED)
    jsonschema.validate(failed_report, SHIPPED)


def test_what_the_judge_makes_keeps_to_it_and_can_be_drawn(judged: Report, tmp_path: Path) -> None:
    jsonschema.validate(judged, SHIPPED)
    draw(judged, tmp_path)
    jsonschema.validate(json.loads((tmp_path / "report.json").read_text()), SHIPPED)
    assert {place.name for place in tmp_path.iterdir()} == {"report.json", "report.html", "figures", "tables"}


@pytest.mark.parametrize(
    ("where", "value"),
    [(("schema",), 99), (("sentence",), None), (("phases", "prefill", "inherent_total"), "3 GB")],
)
def test_another_report_does_not(report: Report, where: tuple[str, ...], value: object) -> None:
    *way, last = where
    place: Any = report
    for name in way:
        place = place[name]
    place[last] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, SHIPPED)


def test_reports_with_times_keep_to_it(report: Report) -> None:
    jsonschema.validate(add_times(report), SHIPPED)


@pytest.mark.parametrize(
    ("name", "value"), [("source", "guessed"), ("label", None), ("by_verdict", {}), ("per_step", {"step_ns": 1})]
)
def test_times_of_another_kind_do_not(report: Report, name: str, value: object) -> None:
    add_times(report)["phases"]["prefill"]["arms"]["jax"]["timing"][name] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, SHIPPED)
