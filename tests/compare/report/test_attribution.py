"""Whose bytes: small programs and their controls, with the answer worked out by hand."""

from dataclasses import replace

from compare.report.attribution import attribute_groups
from compare.report.controls import compare_control, describe_control, list_changes
from compare.report.differences import find_differences
from compare.report.frameworks import Candidate, choose_compared, compare_by_partitioner
from compare.report.model.findings import ControlEffect, ControlPhase, PartitionerPair
from compare.report.witness_bytes import shared_bytes
from tests.compare.report.records import collective, program, totals

CORE = ("layer.attention.core", "tp")


def row(place, amount, *, cause="activation-gather", kind="all-gather", origin="partitioner", executions=1):
    inflated = cause in ("bubble", "replicated")
    return collective(
        scope=place[0],
        axes=place[1],
        kind=kind,
        name=f"{kind}.{place[0]}.{cause}",
        origin=origin,
        inflated_bytes=amount if inflated else 0,
        induced_bytes=0 if inflated else amount,
        causes={cause: amount} if amount else {},
        executions=executions,
        source_line="model.py:7",
    )


def cell(*rows, partitioner="gspmd", attention="idiomatic", style="pinned", loop="scan", libtpu="1", unknown=0):
    return program(
        partitioner=partitioner,
        attention=attention,
        style=style,
        loop=loop,
        versions={"libtpu": libtpu},
        collectives=rows,
        totals=totals(unknown_rows=unknown),
    )


GATHER = row(CORE, 100)
BUBBLE = row(("layer.mlp.down", "tp"), 40, cause="bubble", kind="all-reduce")
DEFAULT = cell(GATHER, BUBBLE)


def owners(**controls):
    """(bytes, owner, evidence) of the groups of the default program above, against these controls."""
    cells = {"tpu": DEFAULT, **{f"tpu+{name}": entry for name, entry in controls.items()}}
    groups = attribute_groups({"torchxla": cells}, default="tpu")
    return [(entry.bytes, entry.owner, entry.evidence) for entry in groups]


def test_what_a_control_removes_is_of_what_it_changes():
    einsum = cell(BUBBLE, attention="einsum")
    assert owners(einsum=einsum, shardy=cell(GATHER, BUBBLE, partitioner="shardy")) == [
        (100, "attention", "tpu+einsum"),
        (40, "open", ""),
    ]


def test_the_least_change_says_whose_it_is_where_several_remove_the_same():
    style, shardy = cell(style="weights"), cell(BUBBLE, partitioner="shardy")
    assert owners(shardy=shardy, weights=style) == [(100, "partitioner", "tpu+shardy"), (40, "style", "tpu+weights")]


SHARDY = cell(GATHER, BUBBLE, partitioner="shardy")


def test_what_goes_with_the_tracer_and_not_with_its_partitioner_alone_is_the_tracer_s():
    torchax = replace(cell(BUBBLE, partitioner="shardy"), tracer="torchax")
    assert owners(torchax=torchax, shardy=SHARDY) == [(100, "tracer", "tpu+torchax"), (40, "open", "")]
    # The lesser change removes it too: then it is that one's.
    assert owners(torchax=torchax, shardy=cell(BUBBLE, partitioner="shardy"))[0] == (100, "partitioner", "tpu+shardy")
    # Nobody tried the partitioner alone: either may own it.
    assert owners(torchax=torchax)[0] == (100, "open", "tpu+torchax")


def test_a_witness_shares_bytes_where_scope_axes_and_verdict_are_the_same():
    (gather, bubble) = find_differences({"torchxla": DEFAULT.collectives}, controls={})
    assert (gather.bytes, bubble.bytes) == (100, 40)
    other = cell(row(CORE, 60, cause="cache-gather"), row(("layer.mlp.down", "dp"), 40, cause="bubble"))
    # Of the gather 60 at the same place under another cause; the bubble's axes are others.
    assert shared_bytes(other, [gather, bubble]) == 60
    assert shared_bytes(cell(row(CORE, 250)), [gather]) == 100
    assert shared_bytes(cell(GATHER, unknown=1), [gather]) is None


def test_what_only_collectives_by_hand_remove_is_the_form_s():
    assert owners(einsum=cell(BUBBLE, attention="einsum"), explicit=cell(style="explicit"), shardy=SHARDY) == [
        (100, "attention", "tpu+einsum"),
        (40, "form", "tpu+explicit"),
    ]


def test_what_goes_by_hand_is_of_nobody_where_nothing_else_was_tried():
    by_hand = cell(style="explicit")
    assert owners(explicit=by_hand) == [(100, "open", "tpu+explicit"), (40, "open", "tpu+explicit")]


def test_what_stays_even_by_hand_is_the_compiler_s():
    stays = cell(GATHER, style="explicit")
    assert owners(explicit=stays, shardy=SHARDY) == [(100, "compiler", "partitioner"), (40, "form", "tpu+explicit")]


def test_what_a_later_pass_made_is_the_compiler_s_and_names_it():
    made_cell = cell(row(CORE, 100, origin="all-gather-combiner"))
    (entry,) = attribute_groups(
        {"jax": {"tpu": made_cell, "tpu+gspmd": replace(made_cell, partitioner="x")}}, default="tpu"
    )
    assert (entry.owner, entry.evidence) == ("compiler", "all-gather-combiner")
    assert entry.origins == {"all-gather-combiner": 100}


def test_an_unknown_origin_is_no_pass():
    unknown_cell = cell(row(CORE, 100, origin="unknown: from a to b"))
    (entry,) = attribute_groups({"jax": {"tpu": unknown_cell}}, default="tpu")
    assert entry.owner == "open"


def test_the_other_framework_s_program_by_hand_shows_what_both_have():
    jax = {"tpu": cell(BUBBLE), "tpu+gspmd": cell(BUBBLE, partitioner="x"), "tpu+explicit": cell(style="explicit")}
    arms = {"jax": jax, "torchxla": {"tpu": DEFAULT, "tpu+shardy": SHARDY}}
    owner = {(entry.arm, entry.bytes): entry.owner for entry in attribute_groups(arms, default="tpu")}
    assert owner == {("jax", 40): "form", ("torchxla", 40): "form", ("torchxla", 100): "open"}


def test_bytes_that_only_change_their_cause_or_kind_have_not_gone():
    other = cell(row(CORE, 90, cause="cache-gather"), BUBBLE, attention="einsum")
    (first, _) = attribute_groups({"torchxla": {"tpu": DEFAULT, "tpu+einsum": other}}, default="tpu")
    # 100 gathered by default, 90 in the control under another cause: 10 have gone
    assert first.controls["tpu+einsum"] == ControlEffect(changes=("attention",), left_bytes=0, removed_bytes=10)
    assert (first.removed_by, first.reduced_by, first.owner) == ((), ("tpu+einsum",), "open")
    assert first.evidence == "tpu+einsum"


def test_bytes_that_come_back_over_other_axes_of_the_same_scope_have_not_gone():
    wide = row((CORE[0], "cp,tp"), 100)
    other = cell(row(CORE, 40), BUBBLE, partitioner="shardy")
    (first, _) = attribute_groups({"torchxla": {"tpu": cell(wide, BUBBLE), "tpu+shardy": other}}, default="tpu")
    # 100 went from over cp and tp, 40 came over tp
    assert first.controls["tpu+shardy"] == ControlEffect(changes=("partitioner",), left_bytes=0, removed_bytes=60)
    assert (first.reduced_by, first.owner, first.evidence) == (("tpu+shardy",), "open", "tpu+shardy")


def test_bytes_that_come_back_inflated_instead_of_induced_have_not_gone():
    ring = row((CORE[0], "cp"), 130, cause="replicated", kind="collective-permute")
    other = cell(row(CORE, 30), ring, BUBBLE, style="weights")
    (first, _) = attribute_groups({"torchxla": {"tpu": DEFAULT, "tpu+weights": other}}, default="tpu")
    # 70 went as induced, 130 came as inflated
    assert first.controls["tpu+weights"] == ControlEffect(changes=("style",), left_bytes=30, removed_bytes=0)
    assert (first.reduced_by, first.evidence) == ((), "")


def test_a_control_that_cannot_be_counted_or_was_not_made_shows_nothing():
    uncounted = cell(attention="einsum", unknown=1)
    failed = replace(cell(style="explicit"), status="crashed", error="died", totals=None)
    (first, _) = attribute_groups({"torchxla": {"tpu": DEFAULT, "a": uncounted, "b": failed}}, default="tpu")
    assert (first.controls, first.owner) == ({}, "open")
    assert compare_control(DEFAULT, uncounted).removed_bytes is None
    assert compare_control(DEFAULT, failed).status == "crashed"


def test_what_a_control_did_is_counted_place_by_place():
    other = cell(row(CORE, 70), row(("embed", "tp"), 5), BUBBLE, attention="einsum")
    assert compare_control(DEFAULT, other) == ControlPhase(
        status="ok", error=None, default_bytes=140, control_bytes=115, removed_bytes=30, added_bytes=5
    )


def test_what_a_control_changes_is_read_off_both_programs():
    assert list_changes(DEFAULT, cell(libtpu="2")) == ("libtpu",)
    assert list_changes(DEFAULT, cell(partitioner="shardy", style="explicit")) == ("partitioner", "style")
    assert list_changes(DEFAULT, replace(DEFAULT, style=None)) == ()
    assert describe_control("tpu+libtpu-0.0.41") == "the same program compiled by libtpu 0.0.41"


def test_a_second_partitioner_is_a_second_comparison():
    arms = {
        "jax": [Candidate("tpu", "shardy", [BUBBLE]), Candidate("tpu+gspmd", "gspmd", [BUBBLE, GATHER])],
        "torchxla": [
            Candidate("tpu", "gspmd", [BUBBLE, GATHER]),
            Candidate("tpu+einsum", "shardy", [], alike=False),
            Candidate("tpu+shardy", "shardy", [BUBBLE, GATHER]),
        ],
    }
    assert {arm: program.cell for arm, program in choose_compared(arms).items()} == {
        "jax": "tpu+gspmd",
        "torchxla": "tpu",
    }
    assert compare_by_partitioner(arms) == (
        PartitionerPair(
            partitioner="gspmd",
            cells={"jax": "tpu+gspmd", "torchxla": "tpu"},
            chosen=True,
            common=140,
            framework_induced={"jax": 0, "torchxla": 0},
        ),
        # under Shardy only TorchXLA gathers
        PartitionerPair(
            partitioner="shardy",
            cells={"jax": "tpu", "torchxla": "tpu+shardy"},
            chosen=False,
            common=40,
            framework_induced={"jax": 0, "torchxla": 100},
        ),
    )
