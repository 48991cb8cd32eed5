"""`--fail-if`: what trips it, what does not, and what can't be told."""

from dataclasses import replace

import pytest

from compare.contract.row import JudgeError
from compare.report.build import lay_out_mesh
from compare.report.fail_if import list_violations, read_condition
from compare.report.model.program import ArmPrograms
from compare.report.model.report import ArmInfo, PhaseReport, Report
from meshes.case import Case
from tests.compare.report.records import program, totals

CASE = Case.read("tp2")
ARMS, PHASES = ("jax", "torchxla"), ("prefill", "decode")


def condition(text):
    return read_condition(text, arms=ARMS, phases=PHASES)


def cell(name, **known):
    return program(cell=name, totals=totals(**{"framework_induced": 0, "wire_bytes": 100} | known))


def phase(**programs):
    return PhaseReport(inherent=(), inherent_total=0, compared_cells={}, arms=programs, differences=(), headline=())


def report(**changes):
    """Induced bytes: none in JAX, 7 in PyTorch/XLA's decode, 9 more in its control."""
    jax = ArmPrograms(default=cell("tpu"))
    torchxla = ArmPrograms(
        default=replace(cell("tpu", induced=7, framework_induced=7), **changes),
        controls={"tpu+libtpu-0.0.41": cell("tpu+libtpu-0.0.41", induced=16)},
    )
    titles = {"jax": "JAX", "torchxla": "TorchXLA"}
    return Report(
        schema=1,
        sentence="",
        case=CASE,
        mesh=lay_out_mesh(CASE),
        arms={arm: ArmInfo(title=title, status="ok", error=None, versions={}) for arm, title in titles.items()},
        phases={"prefill": phase(jax=jax), "decode": phase(jax=jax, torchxla=torchxla)},
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("framework_induced>0", ["TorchXLA decode tpu"]),
        ("framework_induced > 7", []),
        ("framework_induced >= 7", ["TorchXLA decode tpu"]),
        ("jax.induced > 0", []),
        ("decode.induced>0", ["TorchXLA decode tpu"]),
        ("prefill.induced > 0", []),
        ("torchxla.decode.induced == 7B", ["TorchXLA decode tpu"]),
        ("torchxla.decode.tpu+libtpu-0.0.41.induced > 1e1", ["TorchXLA decode tpu+libtpu-0.0.41"]),
        ("wire_bytes < 1 kB", ["JAX prefill tpu", "JAX decode tpu", "TorchXLA decode tpu"]),
        ("wire_bytes > 0.1 kB", []),
        ("jax.wire_bytes != 100", []),
    ],
)
def test_a_condition_trips_for_each_program_that_it_holds_for(text, names):
    lines = list_violations(report(), [condition(text)])
    assert len(lines) == len(names)
    for line, name in zip(lines, names, strict=True):
        assert name in line
        assert repr(text) in line


def test_several_conditions_are_each_asked():
    lines = list_violations(report(), [condition("induced>0"), condition("jax.prefill.wire_bytes>99")])
    assert [line.split(":")[0] for line in lines] == ["--fail-if 'induced>0'", "--fail-if 'jax.prefill.wire_bytes>99'"]


@pytest.mark.parametrize(
    ("text", "changes", "trips"),
    [
        ("induced > 10", {"unknown_rows": 1}, True),  # at least 7
        ("induced > 6", {"unknown_rows": 1}, True),
        ("induced < 6", {"unknown_rows": 1}, False),  # at least 7 is not less than 6
        ("induced > 7", {"upper_bound_rows": 1}, False),  # at most 7
        ("induced > 3", {"upper_bound_rows": 1}, True),
        ("unknown_rows > 0", {"unknown_rows": 1}, True),
        ("unknown_rows > 1", {"unknown_rows": 1}, False),
    ],
)
def test_what_cannot_be_decided_trips_and_says_so(text, changes, trips):
    violations = list_violations(
        report(totals=cell("tpu", induced=7, **changes).totals), [condition(f"torchxla.decode.{text}")]
    )
    assert bool(violations) is trips


def test_a_total_that_is_not_known_trips():
    (line,) = list_violations(report(totals=None, status="crashed"), [condition("torchxla.induced>0")])
    assert "crashed" in line
    nothing = cell("tpu", framework_induced=None).totals
    (line,) = list_violations(report(totals=nothing), [condition("torchxla.framework_induced>0")])
    assert "not known" in line


def test_a_program_that_is_not_in_the_run_trips():
    (line,) = list_violations(report(), [condition("jax.tpu+gspmd.induced>0")])
    assert "no such program" in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot read"),
        ("induced", "cannot read"),
        ("induced > ", "cannot read"),
        ("induced > 1 potato", "cannot read"),
        ("induced > many", "no number"),
        ("induced > nan", "no number"),
        ("indused > 0", "no total 'indused'; choose from framework_induced"),
        ("torchxla.train.induced > 0", "'train' is no arm of this run"),
        ("tourchxla.induced > 0", "jax, torchxla"),
        ("decode.jax.induced > 0", "'jax'"),
    ],
)
def test_a_wrong_expression_is_one_line_that_says_what_would_be_right(text, said):
    with pytest.raises(JudgeError) as caught:
        condition(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_comparison_of_frameworks_is_refused_where_there_is_one():
    with pytest.raises(JudgeError, match="framework_induced is a comparison of frameworks, and this run is of one"):
        read_condition("framework_induced>0", arms=("jax",), phases=PHASES)
