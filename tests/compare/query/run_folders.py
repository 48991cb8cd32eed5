"""Run folders written by hand: a case, some tables, a report."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from meshes.case import Case

PROGRAM = {"phase": "prefill", "arm": "jax", "cell": "tpu", "source": "modelled"}


def write_run(
    folder: Path,
    *,
    mesh: str = "tp4pp2",
    tables: dict[str, list[dict[str, Any]]] | None = None,
    programs: dict[str, Any] | None = None,
    **case: Any,
) -> Path:
    """tables: rows by name; programs: the timing of `jax` in prefill, by cell, `tpu` being its default program."""
    (folder / "tables").mkdir(parents=True)
    options = {"model_name": "tiny", "batch": 8, "seq": 128, **case}
    (folder / "case.json").write_text(Case.read(mesh, **options).to_json())
    for name, rows in {"totals": [{"phase": "prefill", "arm": "jax", "cell": "tpu"}], **(tables or {})}.items():
        pd.DataFrame(rows).to_parquet(folder / "tables" / f"{name}.parquet", index=False)
    timings = {cell: {"cell": cell, "timing": timing} for cell, timing in (programs or {}).items()}
    arm = {"cell": "tpu", **timings.pop("tpu", {}), "controls": timings}
    (folder / "report.json").write_text(json.dumps({"schema": 1, "phases": {"prefill": {"arms": {"jax": arm}}}}))
    return folder
