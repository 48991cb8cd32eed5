"""One compiled program, judged: its rows, its totals, and what of the contract nothing served."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compare.contract.row import ContractRow
from compare.verdict.verdict import Judgement, Verdict

ROW_FIELDS = (
    "name", "kind", "axes", "network", "form", "scope", "origin", "dtype", "executions", "executions_are",
    "payload_bytes", "wire_bytes", "step_wire_bytes", "source_line",
)  # fmt: skip
"""Of a collective, as every report writes them; `groups` beside them."""

INHERENT_FIELDS = (
    "scope", "kind", "axes", "executions", "payload_bytes", "wire_bytes", "step_wire_bytes", "formula", "source",
    "network",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Bytes of one step, mean over devices; rows of unknown executions are in none but `unknown_rows`."""

    wire_bytes: int
    ici_wire_bytes: int
    """Of `wire_bytes`, those of collectives within slices."""
    dcn_wire_bytes: int
    """Those of collectives between slices, over the data centre's network."""
    inherent: int
    inflated: int
    induced: int
    missing: int
    """Of contract rows that nothing serves; rows that a collective of unknown executions serves are in neither."""
    unserved: int
    """Of all contract rows, what nothing serves."""
    unknown_rows: int
    upper_bound_rows: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def totals(judgement: Judgement, contract: Sequence[ContractRow]) -> Totals:
    """Sums of the rows' whole bytes."""
    known = [row for row in judgement.verdicts if row.inherent_bytes is not None]
    rows = [
        (row, served)
        for number, (row, served) in enumerate(zip(contract, judgement.served_bytes, strict=True))
        if number not in judgement.uncounted
    ]
    by_network = {"ici": 0, "dcn": 0}
    for row in known:
        by_network[row.collective.network] += row.collective.step_wire_bytes or 0
    return Totals(
        wire_bytes=sum(by_network.values()),
        ici_wire_bytes=by_network["ici"],
        dcn_wire_bytes=by_network["dcn"],
        inherent=sum(row.inherent_bytes or 0 for row in known),
        inflated=sum(row.inflated_bytes or 0 for row in known),
        induced=sum(row.induced_bytes or 0 for row in known),
        missing=sum(row.step_wire_bytes for row, served in rows if not served),
        unserved=sum(row.step_wire_bytes - served for row, served in rows),
        unknown_rows=len(judgement.verdicts) - len(known),
        upper_bound_rows=sum(row.collective.executions_are == "upper-bound" for row in known),
    )


def row(verdict: Verdict) -> dict[str, Any]:
    """One row of a report's `collectives`."""
    found = verdict.collective
    return {
        **{name: getattr(found, name) for name in ROW_FIELDS},
        "changes": [change.public() for change in found.changes],
        "groups": [list(group) for group in found.groups],
        "inherent_bytes": verdict.inherent_bytes,
        "inflated_bytes": verdict.inflated_bytes,
        "induced_bytes": verdict.induced_bytes,
        "causes": dict(verdict.causes),
        "serves": list(verdict.serves),
        "loops": [loop.trip_count for loop in found.loops],
        "shapes": [f"{one.dtype}[{','.join(map(str, one.shape))}]" for one in found.operands],
        # Nearly always the same everywhere, and then `executions` says it.
        "device_executions": list(found.device_executions) if len(set(found.device_executions)) > 1 else None,
        "hlo": found.text,
    }


def inherent_row(row: ContractRow, *, served_bytes: int | None = None) -> dict[str, Any]:
    """One row of a report's `inherent`; `served_bytes` is unknown where no program was judged."""
    unserved = None if served_bytes is None else row.step_wire_bytes - served_bytes
    fields = {name: getattr(row, name) for name in INHERENT_FIELDS[:7]}
    words = {name: getattr(row, name) for name in INHERENT_FIELDS[7:]}
    return {**fields, "served_bytes": served_bytes, "unserved_bytes": unserved, **words}


def served_rows(judgement: Judgement, contract: Sequence[ContractRow]) -> list[dict[str, Any]]:
    """The contract with what this program serves of it; unknown where one of its collectives can't be counted."""
    return [
        inherent_row(row, served_bytes=None if number in judgement.uncounted else served)
        for number, (row, served) in enumerate(zip(contract, judgement.served_bytes, strict=True))
    ]


def extras(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], int]:
    """(scope, axes) -> inflated + induced bytes, from rows of a report."""
    found: dict[tuple[str, str], int] = {}
    for entry in rows:
        extra = (entry["inflated_bytes"] or 0) + (entry["induced_bytes"] or 0)
        if extra:
            key = (entry["scope"], entry["axes"])
            found[key] = found.get(key, 0) + extra
    return found
