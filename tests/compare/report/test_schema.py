"""report.json keeps to its JSON Schema: reports made by hand, and what the judge makes of compiled text."""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from compare.report.build import build_report
from compare.report.model.about import About, Parameter
from compare.report.model.codec import JsonObject, ReportError, decode, encode, key_of
from compare.report.model.report import Report
from compare.report.programs import ProgramResult, judge_programs
from compare.report.schema import main, report_schema
from meshes.case import Case
from meshes.process.errors import MeshError
from tests.compare.render.from_json import draw
from tests.compare.render.timings import add_times
from tests.places import example_report

EARLIER = Path(__file__).parent / "model" / "earlier"

SCHEMA = report_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

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
def judged() -> JsonObject:
    """What the judge makes of two arms of a small mesh, compiled and run, a program of each kind missing."""
    case = Case.read("tp2", model_name="tiny", phases=("decode",))
    about = About(
        partitioner="gspmd",
        versions={"jaxlib": "0.10.2"},
        loop="scan",
        attention="idiomatic",
        style="pinned",
        parameters=(Parameter(index=0, role="input"),),
    )
    results = [
        ProgramResult(arm="jax", phase="decode", cell="tpu", status="ok", about=about, hlo=HLO),
        ProgramResult(arm="torchxla", phase="decode", cell="tpu", status="ok", about=about, hlo=HLO),
        ProgramResult(arm="torchxla", phase="decode", cell="tpu+einsum", status="crashed", error="signal 6"),
        ProgramResult(arm="jax", phase="decode", cell="cpu", status="ok", about=about, hlo=HLO, executed=case),
        ProgramResult(arm="torchxla", phase="decode", cell="cpu", status="timeout", error="30 s", executed=case),
    ]
    programs = judge_programs(case, results)
    return build_report(case, programs, titles={"jax": "JAX", "torchxla": "TorchXLA"}).to_json()


def test_it_is_a_schema_and_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert main([]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


def test_records_and_fields_are_described_by_their_docstrings_in_the_words_of_json() -> None:
    totals = SCHEMA["$defs"]["Totals"]
    assert totals["description"].startswith("Bytes of one step of a program, mean over devices; rows of unknown")
    common = "Of inflated + induced, what every arm has. null where the program was not compared, like the two below."
    assert totals["properties"]["common"] == {"type": ["integer", "null"], "minimum": 0, "description": common}
    assert totals["properties"]["ici_wire_bytes"]["type"] == "integer"
    assert totals["properties"]["ici_wire_bytes"]["description"].endswith("absent in a report of an earlier version.")
    assert SCHEMA["$defs"]["Timing"]["properties"]["label"] == {"type": "string"}


def records(value: Any) -> Iterator[Any]:
    if is_dataclass(value) and not isinstance(value, Case):
        yield value
        yield from (inner for part in fields(value) for inner in records(getattr(value, part.name)))
    elif isinstance(value, Mapping | list | tuple):
        yield from (
            inner for item in (value.values() if isinstance(value, Mapping) else value) for inner in records(item)
        )


def is_read(kind: type, value: JsonObject) -> bool:
    try:
        decode(kind, value)
    except (ReportError, MeshError):
        return False
    return True


def shorten(value: Any) -> Any:
    """The same with the first entry of each list, one is like another; but all words, of which some are the axes."""
    if isinstance(value, list):
        return value if all(isinstance(part, str) for part in value) else [shorten(part) for part in value[:1]]
    return {key: shorten(part) for key, part in value.items()} if isinstance(value, dict) else value


@pytest.mark.slow
def test_it_refuses_what_reading_refuses(report: JsonObject) -> None:
    """Each kind of record that is in a report: one key after the other is taken away, or gets another value."""
    read = [Report.from_json(value) for value in (example_report(), add_times(report))]  # the smaller one's count
    examples = {type(record): record for whole in read for record in records(whole)}
    assert len(examples) > 40
    # Reading takes null for a key that should be absent.
    absent = {key_of(part) for kind in examples for part in fields(kind) if "optional" in part.metadata}
    for kind, record in examples.items():
        example = shorten(encode(record))
        validator = jsonschema.Draft202012Validator(report_schema(kind))
        assert validator.is_valid(example), kind
        for name in example:
            other = {key: value for key, value in example.items() if key != name}
            nulls = [] if name in absent else [{**other, name: None}]
            for changed in (other, {**other, name: [[]]}, *nulls):
                assert validator.is_valid(changed) == is_read(kind, changed), (kind, name, changed.get(name))


@pytest.mark.parametrize("earlier", sorted(EARLIER.glob("*.gz")), ids=lambda path: path.name)
def test_reports_of_earlier_versions_keep_to_it(earlier: Path) -> None:
    VALIDATOR.validate(json.loads(gzip.decompress(earlier.read_bytes())))


def test_reports_keep_to_it(report: JsonObject, failed_report: JsonObject) -> None:
    VALIDATOR.validate(report)
    VALIDATOR.validate(failed_report)


@pytest.mark.slow
def test_what_the_judge_makes_keeps_to_it_and_can_be_drawn(judged: JsonObject, tmp_path: Path) -> None:
    VALIDATOR.validate(judged)
    draw(judged, tmp_path)
    VALIDATOR.validate(json.loads((tmp_path / "report.json").read_text()))
    assert {place.name for place in tmp_path.iterdir()} == {"report.json", "report.html", "figures", "tables"}


@pytest.mark.parametrize(
    ("where", "value"),
    [(("schema",), 99), (("sentence",), None), (("phases", "prefill", "inherent_total"), "3 GB")],
)
def test_another_report_does_not(report: JsonObject, where: tuple[str, ...], value: object) -> None:
    *way, last = where
    place: Any = report
    for name in way:
        place = place[name]
    place[last] = value
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(report)


def test_reports_with_times_keep_to_it(report: JsonObject) -> None:
    VALIDATOR.validate(add_times(report))


@pytest.mark.parametrize(
    ("name", "value"), [("source", "guessed"), ("label", None), ("by_verdict", {}), ("per_step", {"step_ns": 1})]
)
def test_times_of_another_kind_do_not(report: JsonObject, name: str, value: object) -> None:
    add_times(report)["phases"]["prefill"]["arms"]["jax"]["timing"][name] = value
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(report)
