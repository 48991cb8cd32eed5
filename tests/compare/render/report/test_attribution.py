"""Whose bytes, and what controls showed, as sentences."""

from compare.render.terminal import console
from tests.compare.render.from_json import attribution_tables, page, pair_lines, print_report, showed_lines, whose_lines
from tests.compare.render.reports import make_report


def entry(arm, amount, owner, *, evidence="", cause="bubble", gone=(), half=(), same=()):
    removed = dict.fromkeys(gone, amount) | dict.fromkeys(half, amount // 2) | dict.fromkeys(same, 0)
    return {
        "arm": arm,
        "scope": "layer.mlp.down",
        "axes": "tp",
        "kind": "all-reduce",
        "verdict": "inflated",
        "cause": cause,
        "bytes": amount,
        "owner": owner,
        "evidence": evidence,
        "removed_by": list(gone),
        "reduced_by": list(half),
        "controls": {
            cell: {"changes": [], "left_bytes": amount - part, "removed_bytes": part} for cell, part in removed.items()
        },
        "origins": {},
        "source_line": None,
    }


def report(entries=(), *, pairs=(), controls=()):
    document = make_report(phases=("decode",)) | {"controls": list(controls)}
    document["phases"]["decode"] |= {"attribution": list(entries), "pairs": list(pairs)}
    return document


def test_bytes_are_told_by_owner_with_what_shows_it():
    document = report(
        [
            entry(
                "torchxla", 2_000_000, "attention", evidence="tpu+einsum", gone=("tpu+einsum",), same=("tpu+shardy",)
            ),
            entry("torchxla", 300_000, "form", evidence="tpu+explicit", gone=("tpu+explicit",)),
            entry("torchxla", 100_000, "form", evidence="tpu+explicit", cause="replicated", gone=("tpu+explicit",)),
            entry("jax", 5_000, "compiler", evidence="all-gather-combiner", same=("tpu+explicit",)),
            entry("jax", 4_000, "open", same=("tpu+gspmd",)),
        ]
    )
    assert whose_lines(document, "decode") == [
        "JAX: 5.00 kB attributed to the compiler (cause: bubble; inserted by all-gather-combiner), 4.00 kB "
        "unattributed (cause: bubble; also present in tpu+gspmd; add --controls style to compare with hand-written "
        "collectives)",
        "TorchXLA: 2.00 MB attributed to the attention call (absent in tpu+einsum), 400 kB attributed to the SPMD form "
        "(causes: bubble, replicated; absent in tpu+explicit only)",
    ]


def test_the_table_says_for_each_control_what_became_of_a_group():
    entries = [entry("jax", 80, "loop", evidence="b", gone=("b",), half=("c",), same=("a",))]
    ((title, table),) = attribution_tables(report(entries), "decode")
    assert title == "JAX"
    assert [column.code for column in table.columns[3:]] == ["b", "c", "a"]
    assert [cell.words for cell in table.rows[0].cells[2:]] == ["absent", "half", "same"]
    assert list(attribution_tables(report([entry("jax", 80, "open")]), "decode")) == []


def control(cell, **phases):
    return {"arm": "jax", "cell": cell, "changes": [], "phases": phases}


def done(before, *, removed=0, added=0, status="ok", error=None):
    return {
        "status": status,
        "error": error,
        "default_bytes": before,
        "control_bytes": before - removed + added,
        "removed_bytes": removed,
        "added_bytes": added,
    }


def test_each_control_is_one_sentence():
    refused = done(9, status="not offered", error="style explicit is not offered on pp2")
    lines = showed_lines(
        report(
            controls=[
                control("tpu+gspmd", prefill=done(10), decode=done(20)),
                control("tpu+einsum", prefill=done(4_000, removed=3_000), decode=done(20, removed=20, added=7)),
                control("tpu+explicit", prefill=refused, decode=refused),
                control("tpu+unrolled", decode=done(9, status="crashed", error="died of SIGABRT")),
            ]
        )
    )
    assert lines == [
        "JAX tpu+gspmd, the same program under the GSPMD partitioner: no change",
        "JAX tpu+einsum, the same model with attention written as einsum: removes 3.00 kB of 4.00 kB beyond the plan "
        "in prefill; removes all of 20 B beyond the plan and adds 7 B elsewhere in "
        "decode",
        "JAX tpu+explicit, the same model with every collective written by hand: style explicit is not offered on pp2",
        "JAX tpu+unrolled, the same model with layers and ticks written out: crashed: died of SIGABRT",
    ]


def pair(partitioner, *, chosen=False, torch=5, common=1):
    cells = {"jax": "tpu", "torchxla": "tpu+shardy"}
    return {
        "partitioner": partitioner,
        "cells": cells,
        "chosen": chosen,
        "common": common,
        "framework_induced": {"jax": 0, "torchxla": torch},
    }


def test_a_second_comparison_says_whether_it_agrees():
    first = pair("gspmd", chosen=True)
    assert pair_lines(report(pairs=[first, pair("shardy")]), "decode") == [
        "Under Shardy (JAX tpu against TorchXLA tpu+shardy) the framework-induced bytes are the same."
    ]
    assert pair_lines(report(pairs=[first, pair("shardy", torch=9)]), "decode") == [
        "Under Shardy (JAX tpu against TorchXLA tpu+shardy) the framework-induced bytes differ: JAX 0 B and "
        "TorchXLA 9 B; they depend on the partitioner."
    ]
    assert pair_lines(report(pairs=[first]), "decode") == []


def test_a_report_of_before_has_none_of_it():
    old = make_report(phases=("decode",))
    del old["controls"]
    for name in ("attribution", "pairs"):
        old["phases"]["decode"].pop(name, None)
    assert (whose_lines(old, "decode"), showed_lines(old), pair_lines(old, "decode")) == ([], [], [])
    assert list(attribution_tables(old, "decode")) == []


def test_the_page_and_the_terminal_show_both(capsys):
    document = make_report()
    rows = [entry("torchxla", 2_000_000, "attention", evidence="tpu+einsum", cause="<b>", gone=("tpu+einsum",))]
    document["phases"]["prefill"] |= {"attribution": rows, "pairs": []}
    shown = page(document)
    assert "Attribution: TorchXLA <code>tpu</code> against its controls" in shown
    assert "attributed to the attention call <span" in shown
    assert "(inflated, &lt;b&gt;)" in shown
    assert "<td>absent</td>" in shown
    assert 'id="controls"' in shown
    print_report(document, details=True, out=console())
    said = capsys.readouterr().out
    assert "TorchXLA: 2.00 MB attributed to the attention call (absent in tpu+einsum)" in said
    assert "\nWhat each control removes\nJAX tpu+gspmd, the same program" in said
