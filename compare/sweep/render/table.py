"""A sweep as a table for those who ask their own questions: a row for each program, and for what could not be."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from compare.render.tables import NUMBER, TEXT, TRUTH, WHOLE, Row, frame

Sweep = Mapping[str, Any]

COLUMNS = {
    "model": TEXT, "mesh": TEXT, "topology": TEXT, "num_devices": WHOLE, "batch": WHOLE, "seq": WHOLE,
    "microbatches": WHOLE, "capacity": NUMBER, "dtype": TEXT, "loop": TEXT, "attention": TEXT, "case_status": TEXT,
    "phase": TEXT, "arm": TEXT, "title": TEXT, "cell": TEXT, "is_default": TRUTH, "is_compared": TRUTH,
    "partitioner": TEXT, "status": TEXT, "error": TEXT, "asked_bytes": WHOLE, "wire_bytes": WHOLE,
    "emitted_over_inherent": NUMBER, "qualifier": TEXT, "inherent_bytes": WHOLE, "inflated_bytes": WHOLE,
    "induced_bytes": WHOLE, "common_bytes": WHOLE, "framework_induced_bytes": WHOLE, "missing_bytes": WHOLE,
    "unserved_bytes": WHOLE,
    "dcn_wire_bytes": WHOLE, "modelled_step_ns": NUMBER, "modelled_compute_ns": NUMBER, "modelled_exposed_ns": NUMBER,
    "folder": TEXT, "earlier": TRUTH,
}  # fmt: skip

_SUMS = ("inherent", "inflated", "induced", "common", "framework_induced", "missing", "unserved")


def programs(sweep: Sweep) -> pd.DataFrame:
    """Every program of every case; one row without a program for a combination that has none, and why."""
    return frame(_rows(sweep), COLUMNS)


def _rows(sweep: Sweep) -> Iterator[Row]:
    for one in sweep["results"]:
        own = {name: one.get(name) for name in COLUMNS} | {
            "case_status": one["status"],
            "earlier": bool(one.get("earlier")),
        }
        if not one["phases"]:
            yield own
        for phase, found in one["phases"].items():
            for program in found["programs"]:
                yield {
                    **own,
                    **{name: value for name, value in program.items() if name in COLUMNS},
                    "phase": phase,
                    "asked_bytes": found["inherent_total"],
                    "emitted_over_inherent": program["ratio"],
                    **{f"{name}_bytes": program.get(name) for name in _SUMS},
                }
