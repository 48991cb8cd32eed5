"""What is common and what is one framework's, worked out by hand; and the sentence that tells it."""

from dataclasses import replace

from compare.report.build import lay_out_mesh
from compare.report.differences import find_differences
from compare.report.frameworks import Candidate, ExcessSplit, choose_compared, common_bytes, split_excess
from compare.report.headline import headline_rows, verdict_sentence
from compare.report.model.program import ArmPrograms
from compare.report.model.report import ArmInfo, PhaseReport, Report
from meshes.case import Case
from tests.compare.report.records import collective, program, totals


def row(scope, *, inflated=0, induced=0, axes="tp", kind="all-gather", cause="bubble", executions=1, line=None):
    causes = {cause: inflated + induced} if inflated + induced else {}
    return collective(
        scope=scope,
        axes=axes,
        kind=kind,
        inflated_bytes=inflated,
        induced_bytes=induced,
        causes=causes,
        executions=executions,
        source_line=line,
        name=f"{kind}.{scope}",
    )


SHARDY = [row("embed", inflated=10), row("pipeline.shift", axes="pp", inflated=7)]
GSPMD = [row("embed", inflated=10), row("norm", induced=3, cause="activation-gather")]
TORCH = [
    row("embed", inflated=6),
    row("norm", induced=5, cause="activation-gather"),
    row("layer.attention.core", induced=100, cause="activation-gather", executions=12),
]
ARMS = {
    "jax": [Candidate("tpu", "shardy", SHARDY), Candidate("tpu+gspmd", "gspmd", GSPMD)],
    "torchxla": [Candidate("tpu", "gspmd", TORCH), Candidate("tpu+einsum", "gspmd", [])],
}


def test_arms_are_compared_under_the_same_partitioner():
    assert {arm: cell.cell for arm, cell in choose_compared(ARMS).items()} == {"jax": "tpu+gspmd", "torchxla": "tpu"}


def test_what_every_arm_adds_at_a_place_is_common():
    assert common_bytes(choose_compared(ARMS)) == {("embed", "tp"): 6, ("norm", "tp"): 3}


def test_the_extra_bytes_of_an_arm_split_into_common_framework_and_partitioner():
    assert split_excess(ARMS) == {
        # 13 under GSPMD, of them 9 common; its own partitioner's program has 17: 4 more
        "jax": ExcessSplit(cell="tpu+gspmd", common=9, framework_induced=4, partitioner_induced=4),
        "torchxla": ExcessSplit(cell="tpu", common=9, framework_induced=102, partitioner_induced=0),
    }


def test_defaults_that_agree_on_the_partitioner_are_compared_themselves():
    arms = {"jax": [Candidate("tpu", "gspmd", [])], "torchxla": [Candidate("tpu", "gspmd", TORCH)]}
    assert {arm: cell.cell for arm, cell in choose_compared(arms).items()} == {"jax": "tpu", "torchxla": "tpu"}


def test_one_arm_or_no_partitioner_in_common_is_no_comparison():
    assert split_excess({"jax": ARMS["jax"]}) == {}
    assert (
        split_excess({"jax": [Candidate("tpu", "shardy", SHARDY)], "torchxla": [Candidate("tpu", "gspmd", TORCH)]})
        == {}
    )
    assert split_excess({"jax": ARMS["jax"], "torchxla": []}) == {}


def test_differences_come_by_excess_and_say_what_a_control_leaves():
    differences = find_differences({"jax": GSPMD, "torchxla": TORCH}, controls={"torchxla": {"tpu+einsum": TORCH[:2]}})
    assert [(entry.arm, entry.scope, entry.bytes, entry.excess_bytes) for entry in differences] == [
        ("torchxla", "layer.attention.core", 100, 100),
        ("jax", "embed", 10, 4),
        ("torchxla", "norm", 5, 2),
        ("jax", "norm", 3, -2),
        ("torchxla", "embed", 6, -4),
    ]
    assert differences[0].controls == {"tpu+einsum": 0}
    assert differences[2].controls == {"tpu+einsum": 5}
    assert differences[0].others == {"jax": 0}


CASE = Case.read("tp2", model_name="tiny", phases=("decode",))
TITLES = {"jax": "JAX", "torchxla": "TorchXLA"}


def cell(name, rows, *, wire, **known):
    """A program over a plan of 100 bytes."""
    known = {"wire_bytes": wire, "inherent": 100, "common": 9, "framework_induced": 0} | known
    return program(cell=name, collectives=tuple(rows), totals=totals(**known))


def failed_cell(name):
    return replace(cell(name, [], wire=0), partitioner=None, totals=None, status="crashed", error="died")


def report(
    *, wire=210, framework=110, unknown=0, upper=0, jax=None, controls=(), compared="tpu", required=100, extra=()
):
    """A decode of four layers: PyTorch/XLA gathers q, k and v, unless its attention is an einsum.

    jax, controls: its default program and its controls; compared: the cell of it that is.
    """
    torch = cell("tpu", TORCH, wire=wire, framework_induced=framework, unknown_rows=unknown, upper_bound_rows=upper)
    if framework is None:
        torch = replace(torch, totals=replace(torch.totals, common=None))
    arms = {
        "jax": ArmPrograms(
            default=jax or cell("tpu", GSPMD, wire=113), controls={control.cell: control for control in controls}
        ),
        "torchxla": ArmPrograms(default=torch, controls={"tpu+einsum": cell("tpu+einsum", [], wire=110)}),
    }
    phase = PhaseReport(
        inherent=(),
        inherent_total=required,
        compared_cells={"jax": compared, "torchxla": "tpu"},
        arms=arms,
        differences=find_differences({"jax": GSPMD, "torchxla": TORCH}, controls={"torchxla": {"tpu+einsum": []}}),
        headline=(*headline_rows(arms, required_bytes=required, titles=TITLES), *extra),
    )
    return Report(
        schema=1,
        sentence="",
        case=CASE,
        mesh=lay_out_mesh(CASE),
        arms={arm: ArmInfo(title=title, status="ok", error=None, versions={}) for arm, title in TITLES.items()},
        phases={"decode": phase},
    )


def test_the_sentence_tells_ratio_place_and_what_removes_it():
    assert verdict_sentence(report()) == (
        # of its 6 + 5 + 100 bytes beyond the plan, 100 and 2 are beyond JAX's and gone in the control: 102 / 111
        "TorchXLA moves 2.10 × what the plan needs in decode (JAX: 1.13 × in decode); 92 % of TorchXLA's overhead "
        "comes from its attention call, which all-gathers 3 tensors over tp in every layer; with attention as einsum, "
        "TorchXLA moves 1.10 × in decode."
    )


def test_rows_that_cannot_be_counted_qualify_the_sentence():
    assert "TorchXLA moves at least 2.10 ×" in verdict_sentence(report(unknown=1))
    assert "TorchXLA moves at most 2.10 ×" in verdict_sentence(report(upper=1))


def test_a_ratio_that_leaves_a_part_of_the_plan_unserved_is_told():
    short = report(jax=cell("tpu", GSPMD, wire=113, unserved=30))
    assert verdict_sentence(short).endswith("in decode. JAX does not move all that the plan asks in decode.")


def test_a_finding_does_not_hide_a_program_that_failed():
    *_, last = report().phases["decode"].headline
    crashed = replace(last, status="crashed", wire_bytes=None, cell="tpu+more")
    assert verdict_sentence(report(extra=[crashed])).endswith(
        "1.10 × in decode. Missing: TorchXLA tpu+more in decode (crashed)."
    )


def test_a_cell_that_stands_for_another_default_program_is_named():
    gspmd = cell("tpu+gspmd", GSPMD, wire=120)
    assert "(JAX: 1.20 × (tpu+gspmd) in decode)" in verdict_sentence(report(controls=[gspmd], compared="tpu+gspmd"))


def test_arms_that_agree_are_told_so():
    assert verdict_sentence(report(framework=0, wire=113)) == (
        "No framework adds bytes that the other does not: JAX moves 1.13 × what the plan needs in decode; "
        "TorchXLA moves 1.13 × what the plan needs in decode."
    )


def test_of_a_mesh_that_splits_nothing_nothing_is_told_as_nothing():
    nothing = report(framework=0, wire=0, required=0, jax=cell("tpu", GSPMD, wire=0))
    assert verdict_sentence(nothing) == (
        "No framework adds bytes that the other does not: JAX moves nothing, which is all that the plan needs in "
        "decode; TorchXLA moves nothing, which is all that the plan needs in decode."
    )


def test_arms_that_were_not_compared_are_not_told_to_agree():
    jax = cell("tpu", GSPMD, wire=113, common=None, framework_induced=None)
    assert verdict_sentence(report(framework=None, jax=jax, controls=[failed_cell("tpu+gspmd")])) == (
        "JAX moves 1.13 × what the plan needs in decode; TorchXLA moves 2.10 × what the plan needs in decode; with "
        "attention as einsum, TorchXLA moves 1.10 × in decode. Missing: JAX tpu+gspmd in decode (crashed). Note: the "
        "frameworks are not compared."
    )


def test_what_a_control_moves_is_the_headline_where_no_partitioner_is_common_and_that_is_a_note():
    # As `compare.run --controls attention` compiles them: JAX under Shardy alone.
    jax = cell("tpu", SHARDY, wire=113, common=None, framework_induced=None)
    assert verdict_sentence(report(framework=None, jax=jax)) == (
        "JAX moves 1.13 × what the plan needs in decode; TorchXLA moves 2.10 × what the plan needs in decode; with "
        "attention as einsum, TorchXLA moves 1.10 × in decode. Note: the frameworks are not compared: no partitioner "
        "is common to their programs."
    )


def test_rows_that_cannot_be_counted_leave_the_comparison_open():
    lost = [replace(row("norm"), executions=None)]
    assert (
        split_excess({"jax": [Candidate("tpu", "gspmd", lost)], "torchxla": [Candidate("tpu", "gspmd", TORCH)]}) == {}
    )
