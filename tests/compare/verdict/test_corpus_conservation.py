"""Conservation on real compiled programs that no twin made: the corpus of the reader."""

import gzip
import json

import pytest

from compare.contract.row import ContractRow
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.verdict.verdict import judge
from tests.places import CORPUS

NAMES = sorted(path.name.removesuffix(".hlo.gz") for path in CORPUS.glob("*.hlo.gz"))


def half_contract(rows):
    """A contract that asks for a half of every second place that the program communicates at, in small arrays."""
    moved: dict[tuple[str, str, str], int] = {}
    for row in rows:
        place = (row.scope, row.kind, row.axes)
        moved[place] = moved.get(place, 0) + (row.step_wire_bytes or 0)
    return [
        ContractRow(
            scope=scope,
            kind=kind,
            axes=axes,
            executions=1,
            payload_bytes=1,
            wire_bytes=amount // 2,
            step_wire_bytes=amount // 2,
            carries="both",
            ticks=5,
            idle_ticks=1,
        )
        for (scope, kind, axes), amount in list(moved.items())[::2]
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_byte_of_a_real_program_is_accounted_for_once(name):
    known = json.loads((CORPUS / f"{name}.json").read_text())
    axes = {axis: int(size) for axis, size in (pair.split("=") for pair in known["axes"].split(","))}
    rows = collectives(read(gzip.decompress((CORPUS / f"{name}.hlo.gz").read_bytes()).decode()), axes)
    for contract in ([], half_contract(rows)):
        judgement = judge(rows, contract, axes=axes)
        counted = [verdict for verdict in judgement.verdicts if verdict.inherent_bytes is not None]
        assert [v.collective for v in judgement.verdicts] == rows
        for verdict in counted:
            parts = (verdict.inherent_bytes, verdict.inflated_bytes, verdict.induced_bytes)
            assert sum(parts) == verdict.collective.step_wire_bytes
            assert min(parts) >= 0
        assert sum(judgement.served_bytes) == sum(v.inherent_bytes for v in counted)
