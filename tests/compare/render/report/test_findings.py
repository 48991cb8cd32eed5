"""Differences: arms beside each other, nothing dropped."""

from dataclasses import replace
from typing import Any

from compare.render.report.findings import absent_in, arms_text, control_text, group_findings, sources
from tests.compare.render.from_json import compared, heading, read_phase

Report = dict[str, Any]


def test_every_difference_is_in_exactly_one_part(report: Report) -> None:
    phase = read_phase(report)
    findings = group_findings(phase)
    entries = [
        entry
        for part in (findings.listed, findings.alike, findings.small)
        for finding in part
        for entry in finding.entries
    ]
    assert sorted(map(id, entries)) == sorted(map(id, phase.differences))


def test_the_largest_difference_comes_first_and_small_ones_apart(report: Report) -> None:
    findings = group_findings(read_phase(report))
    assert [(finding.first.arm, finding.first.cause, finding.excess_bytes) for finding in findings.listed] == [
        ("torchxla", "activation-gather", 1_509_949_440)
    ]
    assert [(finding.first.scope, finding.excess_bytes) for finding in findings.small] == [("pipeline.collect", 32)]


def test_what_every_arm_has_is_no_difference(report: Report) -> None:
    alike = group_findings(read_phase(report)).alike
    assert sum(finding.first.bytes for finding in alike) == 931_135_592 - 32
    assert all(finding.by_arm["jax"] == finding.by_arm["torchxla"] for finding in alike)


def test_the_smaller_arm_stands_behind_the_larger(report: Report) -> None:
    first = group_findings(read_phase(report)).listed[0]
    assert arms_text(first, titles={"jax": "JAX", "torchxla": "TorchXLA"}) == "TorchXLA 1.51 GB, JAX 0 B"


def test_a_control_cell_that_removes_it_is_named(report: Report) -> None:
    phase = read_phase(report)
    entry = group_findings(phase).listed[0].first
    assert absent_in(entry) == ["tpu+einsum"]
    assert control_text(entry, phase) == "absent in tpu+einsum (the same model with attention written as einsum)"


def test_a_control_cell_that_changes_nothing_is_named_too(report: Report) -> None:
    phase = read_phase(report)
    entry = group_findings(phase).listed[0].first
    text = control_text(replace(entry, controls={"tpu+einsum": entry.bytes}), phase)
    assert text == "also in tpu+einsum (the same model with attention written as einsum)"
    half = control_text(replace(entry, controls={"tpu+einsum": 10**9}), phase)
    assert half.startswith("1.51 GB → 1.00 GB in tpu+einsum")
    assert control_text(replace(entry, controls={}), phase) == ""


def test_a_default_program_is_no_control_but_the_framework_s_own(report: Report) -> None:
    phase = read_phase(report)
    entry = next(entry for entry in phase.differences if entry.arm == "jax")
    assert control_text(replace(entry, controls={"tpu": 10**12}), phase) == "also in its Shardy program (tpu)"
    assert control_text(replace(entry, controls={"tpu": 0}), phase) == "absent in its Shardy program (tpu)"


def test_every_line_of_source_behind_a_difference_has_its_bytes(report: Report) -> None:
    entry = group_findings(read_phase(report)).listed[0].first
    rows = report["phases"]["prefill"]["arms"]["torchxla"]["collectives"]
    rows[2]["source_line"] = "torchxla_impl/decoder/cache.py:73"
    by_line = sources(entry, compared(report, "prefill"))
    assert by_line == [
        ("torchxla_impl/decoder/layers.py:88", 1_258_291_200),
        ("torchxla_impl/decoder/cache.py:73", 251_658_240),
    ]


def test_one_arm_alone_has_findings_and_no_differences(report: Report, failed_report: Report) -> None:
    assert heading(report, "prefill").startswith("Largest differences")
    assert heading(failed_report, "prefill").startswith("Largest bytes beyond the plan")
