"""Bytes between slices, on a line of their own."""

import pytest

from compare.render.report.plan_tables import network_words
from compare.report.model.codec import decode
from compare.report.model.contract import ServedRow
from tests.compare.render.from_json import between_slices
from tests.compare.render.reports import make_report


def over_slices(**dcn):
    """The made report as if its mesh lay over two slices, with so many bytes of each arm's programs between them.

    An arm that is not named does not say, as in reports of earlier versions.
    """
    report = make_report()
    report["mesh"]["slices"] = 2
    for arm, entry in report["phases"]["prefill"]["arms"].items():
        for cell in (entry, *entry["controls"].values()):
            if arm in dcn:
                wire_bytes = cell["totals"]["wire_bytes"]
                cell["totals"] |= {"dcn_wire_bytes": dcn[arm], "ici_wire_bytes": wire_bytes - dcn[arm]}
            else:
                del cell["totals"]["dcn_wire_bytes"], cell["totals"]["ici_wire_bytes"]
    return report


def test_each_program_says_what_it_moves_between_slices():
    (line,) = between_slices(over_slices(jax=41_943_040, torchxla=0), "prefill")
    assert line == (
        "Between the 2 slices (dcn): JAX tpu 41.9 MB, JAX tpu+gspmd 41.9 MB, TorchXLA tpu 0 B, TorchXLA tpu+einsum "
        "0 B; all else within them (ici)"
    )


def test_where_nothing_crosses_that_is_said():
    assert between_slices(over_slices(jax=0, torchxla=0), "prefill") == ["Between the 2 slices (dcn): nothing"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"network": "ici"}, ""),
        ({}, ""),  # as reports had it before there were slices
        ({"network": "dcn"}, "between slices (dcn)"),
        ({"network": "ici+dcn"}, "within slices and between them (ici+dcn)"),
    ],
)
def test_a_row_of_the_contract_says_what_it_talks_through(row, words):
    known = {
        "scope": "x",
        "kind": "all-gather",
        "axes": "dp",
        "executions": 1,
        "payload_bytes": 1,
        "wire_bytes": 1,
        "step_wire_bytes": 1,
        "served_bytes": 1,
        "unserved_bytes": 0,
        "formula": "f",
        "source": "s",
    }
    assert network_words(decode(ServedRow, known | row)) == words


def test_of_a_single_slice_and_in_reports_that_do_not_tell_nothing_is_said():
    assert between_slices(make_report(), "prefill") == []
    assert between_slices(over_slices(), "prefill") == []
