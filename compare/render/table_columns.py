"""The columns of a report's tables, with their dtypes."""

from collections.abc import Mapping
from types import MappingProxyType

from compare.report.model.codec import hinted_fields, plain_options
from compare.report.model.contract import ServedRow
from compare.report.model.findings import Difference

TEXT, WHOLE, NUMBER, TRUTH = "string", "Int64", "Float64", "boolean"
"""Nullable pandas dtypes."""

_PROGRAM = {"phase": TEXT, "arm": TEXT, "cell": TEXT, "is_default": TRUTH}

COLLECTIVES = {
    **_PROGRAM, "place_in_program": WHOLE, "name": TEXT, "kind": TEXT, "axes": TEXT, "network": TEXT, "form": TEXT,
    "scope": TEXT, "origin": TEXT, "changes_json": TEXT, "dtype": TEXT, "groups_json": TEXT, "loops_json": TEXT,
    "executions": WHOLE, "executions_are": TEXT, "payload_bytes": WHOLE, "wire_bytes": WHOLE, "step_wire_bytes": WHOLE,
    "inherent_bytes": WHOLE, "inflated_bytes": WHOLE, "induced_bytes": WHOLE, "causes_json": TEXT,
    "serves_json": TEXT, "source_line": TEXT, "hlo": TEXT,
}  # fmt: skip


def columns_of(record: type, *, names: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """A column for each field of a record, by its type: a number, text or truth as such, any other as JSON.

    names: field -> its column, where that has another name.
    """
    columns = {}
    for part, hint in hinted_fields(record):
        options = set(plain_options(hint))
        kind = next((dtype for types, dtype in _DTYPES if options <= types), "")
        columns[names.get(part.name, part.name) + ("" if kind else "_json")] = kind or TEXT
    return columns


_DTYPES = (({str}, TEXT), ({bool}, TRUTH), ({int}, WHOLE), ({int, float}, NUMBER))

INHERENT = {"phase": TEXT, "contract_row": WHOLE, **columns_of(ServedRow)}
DIFFERENCES = {"phase": TEXT, **columns_of(Difference, names={"bytes": "step_wire_bytes"})}

TOTALS = {
    **_PROGRAM, "title": TEXT, "status": TEXT, "error": TEXT, "partitioner": TEXT, "loop": TEXT, "attention": TEXT,
    "style": TEXT, "wire_bytes": WHOLE, "inherent_bytes": WHOLE, "inflated_bytes": WHOLE, "induced_bytes": WHOLE,
    "common_bytes": WHOLE, "framework_induced_bytes": WHOLE, "partitioner_induced_bytes": WHOLE,
    "missing_bytes": WHOLE, "unserved_bytes": WHOLE, "asked_bytes": WHOLE, "emitted_over_inherent": NUMBER,
    "unknown_rows": WHOLE, "upper_bound_rows": WHOLE, "ici_wire_bytes": WHOLE, "dcn_wire_bytes": WHOLE,
    "compute_over_floor": NUMBER,
    "step_j": NUMBER, "low_j": NUMBER, "high_j": NUMBER, "matrix_j": NUMBER, "vector_j": NUMBER, "memory_j": NUMBER,
    "ici_j": NUMBER, "dcn_j": NUMBER, "static_j": NUMBER, "inherent_j": NUMBER, "inflated_j": NUMBER,
    "induced_j": NUMBER, "rest_j": NUMBER, "per_token_j": NUMBER, "mean_w": NUMBER, "peak_w": NUMBER,
}  # fmt: skip
"""Joules and watts are modelled, of the full mesh (docs/energy.md); bytes are of one device."""
