"""Parts of a report written by hand: what is not said is small and ordinary."""

from typing import Any

from compare.report.model.program import CollectiveRow, ProgramReport, Totals


def collective(**known: Any) -> CollectiveRow:
    """One row of `collectives`."""
    ordinary: dict[str, Any] = {
        "name": "row", "kind": "all-gather", "axes": "tp", "network": "ici", "form": "sync", "scope": "?",
        "origin": "not recorded", "dtype": "bf16", "executions": 1, "executions_are": "exact", "payload_bytes": 0,
        "wire_bytes": 0, "step_wire_bytes": 0, "source_line": None, "groups": (), "inherent_bytes": 0,
        "inflated_bytes": 0, "induced_bytes": 0, "causes": {}, "serves": (), "loops": (), "hlo": "",
    }  # fmt: skip
    return CollectiveRow(**ordinary | known)


def totals(**known: Any) -> Totals:
    ordinary = {
        "wire_bytes": 0,
        "inherent": 0,
        "inflated": 0,
        "induced": 0,
        "missing": 0,
        "unserved": 0,
        "unknown_rows": 0,
        "upper_bound_rows": 0,
    }
    return Totals(**ordinary | known)


def program(**known: Any) -> ProgramReport:
    """The default program of an arm, judged, with no collectives."""
    ordinary: dict[str, Any] = {
        "cell": "tpu",
        "status": "ok",
        "error": None,
        "partitioner": "gspmd",
        "versions": {"libtpu": "1"},
        "compile_options": None,
        "seconds": None,
        "memory": None,
        "cost": None,
        "loop": "scan",
        "attention": "idiomatic",
        "style": "pinned",
        "collectives": (),
        "served": (),
        "totals": totals(),
    }
    return ProgramReport(**ordinary | known)
