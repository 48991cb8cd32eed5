"""What is common and what is one framework's, worked out by hand; and the sentence that tells it."""

from compare.report.differences import differences
from compare.report.frameworks import Cell, Split, common_bytes, compared, splits
from compare.report.headline import headline, verdict_sentence


def row(scope, *, inflated=0, induced=0, axes="tp", kind="all-gather", cause="bubble", executions=1, line=None):
    causes = {cause: inflated + induced} if inflated + induced else {}
    return {
        "scope": scope, "axes": axes, "kind": kind, "inflated_bytes": inflated, "induced_bytes": induced,
        "causes": causes, "executions": executions, "source_line": line, "name": f"{kind}.{scope}", "serves": [],
    }  # fmt: skip


SHARDY = [row("embed", inflated=10), row("pipeline.shift", axes="pp", inflated=7)]
GSPMD = [row("embed", inflated=10), row("norm", induced=3, cause="activation-gather")]
TORCH = [row("embed", inflated=6), row("norm", induced=5, cause="activation-gather"),
         row("layer.attention.core", induced=100, cause="activation-gather", executions=6)]  # fmt: skip
ARMS = {
    "jax": [Cell("tpu", "shardy", SHARDY), Cell("tpu+gspmd", "gspmd", GSPMD)],
    "torchxla": [Cell("tpu", "gspmd", TORCH), Cell("tpu+einsum", "gspmd", [])],
}


def test_arms_are_compared_under_the_same_partitioner():
    assert {arm: cell.name for arm, cell in compared(ARMS).items()} == {"jax": "tpu+gspmd", "torchxla": "tpu"}


def test_what_every_arm_adds_at_a_place_is_common():
    assert common_bytes(compared(ARMS)) == {("embed", "tp"): 6, ("norm", "tp"): 3}


def test_the_extra_bytes_of_an_arm_split_into_common_framework_and_partitioner():
    assert splits(ARMS) == {
        # 13 under GSPMD, of them 9 common; its own partitioner's program has 17: 4 more
        "jax": Split(cell="tpu+gspmd", common=9, framework_induced=4, partitioner_induced=4),
        "torchxla": Split(cell="tpu", common=9, framework_induced=102, partitioner_induced=0),
    }


def test_defaults_that_agree_on_the_partitioner_are_compared_themselves():
    arms = {"jax": [Cell("tpu", "gspmd", [])], "torchxla": [Cell("tpu", "gspmd", TORCH)]}
    assert {arm: cell.name for arm, cell in compared(arms).items()} == {"jax": "tpu", "torchxla": "tpu"}


def test_one_arm_or_no_partitioner_in_common_is_no_comparison():
    assert splits({"jax": ARMS["jax"]}) == {}
    assert splits({"jax": [Cell("tpu", "shardy", SHARDY)], "torchxla": [Cell("tpu", "gspmd", TORCH)]}) == {}
    assert splits({"jax": ARMS["jax"], "torchxla": []}) == {}


def test_differences_come_by_excess_and_say_what_a_control_leaves():
    found = differences({"jax": GSPMD, "torchxla": TORCH}, controls={"torchxla": {"tpu+einsum": TORCH[:2]}})
    assert [(entry["arm"], entry["scope"], entry["bytes"], entry["excess_bytes"]) for entry in found] == [
        ("torchxla", "layer.attention.core", 100, 100),
        ("jax", "embed", 10, 4),
        ("torchxla", "norm", 5, 2),
        ("jax", "norm", 3, -2),
        ("torchxla", "embed", 6, -4),
    ]
    assert found[0]["controls"] == {"tpu+einsum": 0}
    assert found[2]["controls"] == {"tpu+einsum": 5}
    assert found[0]["others"] == {"jax": 0}


def cell(name, rows, *, partitioner, wire, unknown=0, upper=0):
    totals = {"wire_bytes": wire, "inherent": 100, "inflated": 0, "induced": 0, "common": 9, "framework_induced": 0,
              "missing": 0, "unknown_rows": unknown, "upper_bound_rows": upper}  # fmt: skip
    return {"cell": name, "partitioner": partitioner, "status": "ok", "error": None, "totals": totals,
            "collectives": rows, "controls": {}}  # fmt: skip


def report(*, wire=210, framework=110, unknown=0, upper=0):
    torch = cell("tpu", TORCH, partitioner="gspmd", wire=wire, unknown=unknown, upper=upper)
    torch["totals"]["framework_induced"] = framework
    torch["controls"] = {"tpu+einsum": cell("tpu+einsum", [], partitioner="gspmd", wire=110)}
    phase = {
        "inherent_total": 100,
        "compared_cells": {"jax": "tpu", "torchxla": "tpu"},
        "arms": {"jax": cell("tpu", GSPMD, partitioner="gspmd", wire=113), "torchxla": torch},
        "differences": differences({"jax": GSPMD, "torchxla": TORCH}, controls={"torchxla": {"tpu+einsum": []}}),
    }
    titles = {"jax": "JAX", "torchxla": "TorchXLA"}
    phase["headline"] = headline(phase, titles=titles)
    return {
        "case": {"mesh": {"axes": {"pp": 1}}, "model": {"layers": 2}, "microbatches": 1},
        "arms": {arm: {"title": title, "error": None, "status": "ok"} for arm, title in titles.items()},
        "phases": {"decode": phase},
    }


def test_the_sentence_tells_ratio_place_and_what_removes_it():
    assert verdict_sentence(report()) == (
        # of its 6 + 5 + 100 bytes beyond the plan, 100 and 2 are beyond JAX's and gone in the control: 102 / 111
        "TorchXLA moves 2.10 × what the plan needs in decode (JAX: 1.13 × in decode); 92 % of the excess is one thing: "
        "its attention call gathers 3 tensors over tp in every layer; written as einsum it moves 1.10 × in decode."
    )


def test_rows_that_cannot_be_counted_qualify_the_sentence():
    assert "TorchXLA moves at least 2.10 ×" in verdict_sentence(report(unknown=1))
    assert "TorchXLA moves at most 2.10 ×" in verdict_sentence(report(upper=1))


def test_a_ratio_that_leaves_a_part_of_the_plan_unserved_is_told():
    found = report()
    found["phases"]["decode"]["arms"]["jax"]["totals"]["unserved"] = 30
    assert verdict_sentence(found).endswith("in decode. JAX does not move all that the plan asks in decode.")


def test_a_finding_does_not_hide_a_program_that_failed():
    found = report()
    phase = found["phases"]["decode"]
    phase["headline"].append({**phase["headline"][-1], "status": "crashed", "wire_bytes": None, "cell": "tpu+more"})
    assert verdict_sentence(found).endswith("1.10 × in decode. Missing: TorchXLA tpu+more in decode (crashed).")


def test_a_cell_that_stands_for_another_default_program_is_named():
    found = report()
    phase = found["phases"]["decode"]
    jax = phase["arms"]["jax"]
    jax["controls"] = {"tpu+gspmd": cell("tpu+gspmd", GSPMD, partitioner="gspmd", wire=120)}
    phase["compared_cells"]["jax"] = "tpu+gspmd"
    phase["headline"] = headline(phase, titles={"jax": "JAX", "torchxla": "TorchXLA"})
    assert "(JAX: 1.20 × (tpu+gspmd) in decode)" in verdict_sentence(found)


def test_arms_that_agree_are_told_so():
    assert verdict_sentence(report(framework=0, wire=113)) == (
        "No framework adds bytes that the other does not: JAX moves 1.13 × what the plan needs in decode; "
        "TorchXLA moves 1.13 × what the plan needs in decode."
    )


def test_of_a_mesh_that_splits_nothing_nothing_is_told_as_nothing():
    found = report(framework=0, wire=0)
    phase = found["phases"]["decode"]
    phase["inherent_total"], phase["arms"]["jax"]["totals"]["wire_bytes"] = 0, 0
    phase["headline"] = headline(phase, titles={"jax": "JAX", "torchxla": "TorchXLA"})
    assert verdict_sentence(found) == (
        "No framework adds bytes that the other does not: JAX moves nothing, which is all that the plan needs in "
        "decode; TorchXLA moves nothing, which is all that the plan needs in decode."
    )


def test_arms_that_were_not_compared_are_not_told_to_agree():
    found = report()
    phase = found["phases"]["decode"]
    phase["arms"]["jax"]["controls"] = {"tpu+gspmd": {**cell("tpu+gspmd", [], partitioner=None, wire=0), "totals": None,
                                                      "status": "crashed", "error": "died"}}  # fmt: skip
    for arm in phase["arms"].values():
        arm["totals"] |= {"common": None, "framework_induced": None}
    phase["headline"] = headline(phase, titles={"jax": "JAX", "torchxla": "TorchXLA"})
    assert verdict_sentence(found) == (
        "The frameworks could not be compared: JAX moves 1.13 × what the plan needs in decode; TorchXLA moves 2.10 × "
        "what the plan needs in decode. Missing: JAX tpu+gspmd in decode (crashed)."
    )


def test_rows_that_cannot_be_counted_leave_the_comparison_open():
    lost = [{**row("norm"), "executions": None}]
    assert splits({"jax": [Cell("tpu", "gspmd", lost)], "torchxla": [Cell("tpu", "gspmd", TORCH)]}) == {}
