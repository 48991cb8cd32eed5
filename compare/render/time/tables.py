"""Timelines as tables: every event and step of every program, and the summary of each by what it communicates over."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from compare.render.tables import NUMBER, TEXT, TRUTH, WHOLE, Row, frame
from compare.render.time.timeline_view import TimedProgram, shares_by_name
from compare.render.time.timing_section import timings
from compare.report.model.codec import encode
from compare.report.model.report import Report
from compare.timing.metrics.verdicts import UNKNOWN_VERDICT, VERDICTS
from compare.timing.timeline import COMMUNICATION, DERIVED_COLUMNS, EVENT_COLUMNS, STEP_COLUMNS

_WORDS = pa.dictionary(pa.int32(), pa.string())
_TYPES = {"category": _WORDS, "int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64()}
_WHOSE = ("arm", "phase", "cell", "source")

_SHOWN = (*VERDICTS, UNKNOWN_VERDICT, "")
"""Verdicts of events; that of what is no communication last."""

_ALIKE = {"stands_for": "int32"}
"""How many devices a row is of: a modelled timeline shows those that do the same once."""

EVENTS = {**EVENT_COLUMNS, **DERIVED_COLUMNS, "verdict": "category", **_ALIKE}

TIMES = {
    "phase": TEXT, "arm": TEXT, "cell": TEXT, "is_default": TRUTH, "source": TEXT, "label": TEXT, "split_by": TEXT,
    "part": TEXT, "devices": WHOLE, "steps": WHOLE, "unjoined_events": WHOLE, "executions": NUMBER,
    "payload_bytes": NUMBER, "step_ns": NUMBER, "compute_ns": NUMBER, "communication_ns": NUMBER,
    "exposed_ns": NUMBER, "hidden_ns": NUMBER, "wait_ns": NUMBER, "communication_fraction": NUMBER,
    "overlap": NUMBER,
}  # fmt: skip
"""Means of one device and one step.  split_by: `all axes kind scope verdict device step`; part: which of them."""

_PROGRAM = {"phase": TEXT, "arm": TEXT, "cell": TEXT, "source": TEXT}

LISTS = {
    "intervals": {
        **_PROGRAM, "from_axes": TEXT, "to_axes": TEXT, "n": WHOLE, "median_ns": NUMBER, "p95_ns": NUMBER,
        "iqr_ns": NUMBER,
    },
    "matrix": {
        **_PROGRAM, "device_from": WHOLE, "device_to": WHOLE, "axes": TEXT, "logical_bytes": NUMBER,
        "routed_bytes": NUMBER,
    },
    "messages": {
        **_PROGRAM, "kind": TEXT, "axes": TEXT, "scope": TEXT, "dtype": TEXT, "shapes_json": TEXT,
        "payload_bytes": NUMBER, "count": NUMBER,
    },
}  # fmt: skip
"""What a section has as lists, each a table of its own: docs/metrics.md, sections 5, 7 and 10."""


def save(report: Report, folder: Path, *, timelines: Sequence[TimedProgram]) -> None:
    """Write `times.parquet`, `events.parquet`, `steps.parquet`, and a table for each of LISTS."""
    folder.mkdir(parents=True, exist_ok=True)
    frame(_times(report), TIMES).to_parquet(folder / "times.parquet", compression="zstd", index=False)
    for name, columns in LISTS.items():
        frame(_listed(report, name), columns).to_parquet(folder / f"{name}.parquet", compression="zstd", index=False)
    _write(folder / "events.parquet", EVENTS, ((one, _judged(one)) for one in timelines))
    _write(folder / "steps.parquet", {**STEP_COLUMNS, **_ALIKE}, ((one, one.timeline.steps) for one in timelines))


def _judged(program: TimedProgram) -> pd.DataFrame:
    """Its events, with the verdict of each communication: that of the largest part of its bytes."""
    verdicts = {name: share.verdict for name, share in shares_by_name(program.shares).items()}
    rows = program.timeline.events
    names = rows["collective"].cat.categories
    found = pd.Categorical([verdicts.get(str(name), UNKNOWN_VERDICT) for name in names], _SHOWN)
    codes = np.where(rows["role"].eq(COMMUNICATION), found.codes[rows["collective"].cat.codes], len(_SHOWN) - 1)
    return rows.assign(verdict=pd.Categorical.from_codes(codes, found.categories))


def _times(report: Report) -> Iterator[Row]:
    for phase in report.phases:
        for one in timings(report, phase):
            section = one.section
            whose = {"phase": phase, "arm": one.arm, "cell": one.cell, "is_default": one.default}
            whose |= {"source": section.source, "label": section.label, "devices": section.devices}
            whose |= {"steps": section.steps, "unjoined_events": section.unjoined_events}
            per_step = section.per_step
            yield {**whose, "split_by": "all", "part": "", **encode(per_step)}
            for by, parts in {"axes": per_step.by_axes, "kind": per_step.by_kind, "scope": per_step.by_scope}.items():
                for part, times in parts.items():
                    yield {**whose, "split_by": by, "part": part, **encode(times)}
            for verdict in _SHOWN[:-1]:
                of_verdict = section.by_verdict.get(verdict)
                yield {**whose, "split_by": "verdict", "part": verdict, **(encode(of_verdict) if of_verdict else {})}
            for device in section.per_device:
                yield {**whose, "split_by": "device", "part": str(device.device), **encode(device)}
            for step in section.each_step:
                yield {**whose, "split_by": "step", "part": str(step.step), **encode(step)}


def _listed(report: Report, name: str) -> Iterator[Row]:
    """One list of every program's section; one that has none, as the matrix of very many devices, adds nothing."""
    for phase in report.phases:
        for one in timings(report, phase):
            rows = {
                "intervals": one.section.intervals, "matrix": one.section.matrix, "messages": one.section.messages,
            }[name]  # fmt: skip
            whose = {"phase": phase, "arm": one.arm, "cell": one.cell, "source": one.source}
            yield from ({**whose, **encode(row)} for row in rows or ())


def _write(path: Path, columns: Mapping[str, str], parts: Iterator[tuple[TimedProgram, pd.DataFrame]]) -> None:
    """One row group after another, so that no two programs' events need to be in memory as one table.

    columns: those of `parts`, and how many devices each row is of.
    """
    schema = pa.schema([(name, _WORDS) for name in _WHOSE] + [(name, _TYPES[kind]) for name, kind in columns.items()])
    with pq.ParquetWriter(path, schema, compression="zstd") as out:
        for one, found in parts:
            alike = {device: len(own) for device, own in one.timeline.stands_for.items()}
            rows = found.assign(stands_for=found["device"].map(alike).fillna(1))
            whose = dict(zip(_WHOSE, (one.arm, one.phase, one.cell, one.timeline.source), strict=True))
            arrays = [_alike(word, len(rows)) for word in whose.values()]
            arrays += [pa.array(rows[name], from_pandas=True).cast(schema.field(name).type) for name in columns]
            out.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _alike(word: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([word]))
