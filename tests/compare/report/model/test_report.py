"""Reports read as typed records and written again."""

import copy
import dataclasses
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compare.report.model.codec import ReportError
from compare.report.model.report import Report
from tests.compare.render.reports import make_report, make_report_without_torchxla
from tests.compare.render.timings import add_times
from tests.places import EXAMPLE, example_report

EARLIER = Path(__file__).parent / "earlier"
"""`report.json` of the example run as earlier versions wrote it: the first, and the first with times."""


def text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def test_the_example_run_s_report_is_written_again_byte_for_byte():
    read = (EXAMPLE / "report.json").read_text(encoding="utf-8")
    assert text(Report.from_json(json.loads(read)).to_json()) == read


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_report(phases=("prefill", "decode")),
        lambda: make_report("dp2tp4@2xv5e:2x2"),
        make_report_without_torchxla,
        lambda: add_times(make_report()),
    ],
    ids=["two phases", "two slices", "an arm is missing", "with times"],
)
def test_every_key_is_kept_in_its_place(make: Callable[[], Any]):
    report = make()
    assert text(Report.from_json(report).to_json()) == text(report)


def without_field(earlier: Any, now: Any, at: str = "") -> list[str]:
    """Where something that was there has gone or changed; the case's rules are read as `meshes` reads them."""
    if isinstance(earlier, dict):
        return [
            way
            for name, value in earlier.items()
            if f"{at}.{name}" != ".case.rules"
            for way in (without_field(value, now[name], f"{at}.{name}") if name in now else [f"{at}.{name}"])
        ]
    if isinstance(earlier, list):
        pairs = enumerate(zip(earlier, now, strict=True))
        return [way for number, pair in pairs for way in without_field(*pair, f"{at}.{number}")]
    return [] if earlier == now else [at]


@pytest.mark.parametrize("name", ["first", "times"])
def test_a_report_of_an_earlier_version_loses_nothing(name: str):
    earlier = json.loads(gzip.decompress((EARLIER / f"{name}.json.gz").read_bytes()))
    assert "attribution" not in earlier["phases"]["prefill"]
    report = Report.from_json(earlier)
    assert without_field(earlier, report.to_json()) == []
    assert report.phases["prefill"].attribution == report.controls == ()
    assert report.phases["prefill"].inherent[0].network == "ici"
    assert report.phases["prefill"].arms["jax"].default.totals.dcn_wire_bytes is None
    assert (report.phases["prefill"].arms["jax"].default.timing is None) == (name == "first")


def test_an_arm_s_programs_are_the_default_its_controls_and_what_was_run():
    report = Report.from_json(add_times(make_report()))
    jax = report.phases["prefill"].arms["jax"]
    assert [program.cell for program in jax] == ["tpu", "tpu+gspmd", "cpu"]
    assert [program.cell for program in jax.compiled] == ["tpu", "tpu+gspmd"]
    assert jax.cell("cpu") is jax.profiles["cpu"]
    assert jax.profiles["cpu"].execution.executed["platform"] == "cpu"
    assert jax.default.execution is None


def change(way: str, value: Any = ...) -> Any:
    """The example's report with another value there, or none."""
    report = copy.deepcopy(example_report())
    *names, last = way.split(".")
    place = report
    for name in names:
        place = place[int(name) if isinstance(place, list) else name]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return report


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ([], "it is [], not an object"),
        (change("sentence"), "sentence is not there"),
        (
            change("phases.decode.arms.jax.totals.inherent", "3 GB"),
            "phases.decode.arms.jax.totals.inherent is '3 GB', not int",
        ),
        (change("phases.decode.arms.jax.controls", []), "phases.decode.arms.jax.controls is [], not an object"),
        (change("phases.prefill.inherent_total", None), "phases.prefill.inherent_total is None, not int"),
        (change("phases.prefill.differences", {}), "phases.prefill.differences is {}, not a list"),
        (change("mesh.devices.0.place.x"), "mesh.devices.place has slice_index, y, z, core"),
    ],
)
def test_what_is_no_report_is_refused_in_one_line(report: Any, words: str):
    with pytest.raises(ReportError, match="this is not a Report of wirediff: ") as refused:
        Report.from_json(report)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_keys_of_later_versions_are_left_out():
    assert Report.from_json(change("mesh.colour", "red")).to_json() == example_report()


def test_a_report_does_not_change_with_the_json_that_it_was_read_from_or_written_to():
    read = copy.deepcopy(example_report())
    report = Report.from_json(read)
    for value in (read, report.to_json()):
        value["phases"]["prefill"]["arms"]["jax"]["versions"].clear()
        value["phases"]["prefill"]["arms"]["jax"]["collectives"].clear()
    assert report.to_json() == example_report()
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.sentence = "another"  # type: ignore[misc]
