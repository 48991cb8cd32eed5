"""The columns of the tables of timelines, with their dtypes."""

from compare.render.table_columns import NUMBER, TEXT, TRUTH, WHOLE, columns_of
from compare.report.model.timing import Gaps, Messages, PairTraffic
from compare.timeline.columns import DERIVED_COLUMNS, EVENT_COLUMNS, WORK_COLUMNS

ALIKE = {"stands_for": "int32"}
"""Number of devices that a row represents: a modelled timeline shows identical devices once."""

EVENTS = {**EVENT_COLUMNS, **DERIVED_COLUMNS, "verdict": "category", **ALIKE, **WORK_COLUMNS, "dynamic_j": "float64"}
"""dynamic_j: the energy of the event's work on its device, modelled (docs/energy.md); NaN where there is no energy."""

TIMES = {
    "phase": TEXT, "arm": TEXT, "cell": TEXT, "is_default": TRUTH, "source": TEXT, "label": TEXT, "split_by": TEXT,
    "part": TEXT, "devices": WHOLE, "steps": WHOLE, "unjoined_events": WHOLE, "executions": NUMBER,
    "payload_bytes": NUMBER, "step_ns": NUMBER, "compute_ns": NUMBER, "communication_ns": NUMBER,
    "exposed_ns": NUMBER, "hidden_ns": NUMBER, "wait_ns": NUMBER, "communication_fraction": NUMBER,
    "overlap": NUMBER,
}  # fmt: skip
"""Means per device and step.  split_by: `all axes kind scope verdict device step`; part: its value."""

_PROGRAM = {"phase": TEXT, "arm": TEXT, "cell": TEXT, "source": TEXT}

LISTS = {
    "intervals": {**_PROGRAM, **columns_of(Gaps)},
    "matrix": {**_PROGRAM, **columns_of(PairTraffic)},
    "messages": {**_PROGRAM, **columns_of(Messages)},
}
del LISTS["intervals"]["quantiles_ns_json"]
"""The lists of a timing section, each a table: docs/metrics.md, sections 5, 7 and 10."""
