"""Timelines as tables: every event and step of every program, and summaries by axes, kind, scope and verdict."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from compare.energy.amounts import event_joules
from compare.energy.step_energy import list_rates
from compare.metrics.verdicts import UNKNOWN_VERDICT, VERDICTS
from compare.render.tables import Row, frame
from compare.render.time.timeline_columns import ALIKE, EVENTS, LISTS, TIMES
from compare.render.time.timeline_view import ProgramTimeline, shares_by_name
from compare.render.time.timing_section import timings
from compare.report.model.codec import encode
from compare.report.model.report import Report
from compare.timeline.arrays import Floats
from compare.timeline.columns import STEP_COLUMNS, WORK_COLUMNS
from compare.timeline.timeline import COMMUNICATION

_WORDS = pa.dictionary(pa.int32(), pa.string())
_TYPES = {"category": _WORDS, "int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64()}
_WHOSE = ("arm", "phase", "cell", "source")

_SHOWN = (*VERDICTS, UNKNOWN_VERDICT, "")
"""Verdicts of events; "" (no communication) last."""


def save(report: Report, folder: Path, *, timelines: Sequence[ProgramTimeline]) -> None:
    """Write `times.parquet`, `events.parquet`, `steps.parquet`, and a table for each of LISTS."""
    folder.mkdir(parents=True, exist_ok=True)
    frame(_times(report), TIMES).to_parquet(folder / "times.parquet", compression="zstd", index=False)
    for name, columns in LISTS.items():
        frame(_list_rows(report, name), columns).to_parquet(folder / f"{name}.parquet", compression="zstd", index=False)
    rates = list_rates(report.energy_model) if report.energy_model else None
    _write(folder / "events.parquet", EVENTS, ((program, _list_events(program, rates)) for program in timelines))
    _write(
        folder / "steps.parquet",
        {**STEP_COLUMNS, **ALIKE},
        ((program, program.timeline.steps) for program in timelines),
    )


def _list_events(program: ProgramTimeline, rates: Floats | None) -> pd.DataFrame:
    """The events, with the verdict of each communication (that of most of its bytes), and the energy of each.

    rates: of the report's coefficients.
    """
    verdicts = {name: share.verdict for name, share in shares_by_name(program.shares).items()}
    rows = program.timeline.events
    names = rows["collective"].cat.categories
    by_category = pd.Categorical([verdicts.get(str(name), UNKNOWN_VERDICT) for name in names], _SHOWN)
    codes = np.where(rows["role"].eq(COMMUNICATION), by_category.codes[rows["collective"].cat.codes], len(_SHOWN) - 1)
    unknown = {name: np.nan for name in WORK_COLUMNS if name not in rows}
    energies = np.nan if program.energy is None or rates is None else event_joules(rows, rates)
    return rows.assign(verdict=pd.Categorical.from_codes(codes, by_category.categories), **unknown, dynamic_j=energies)


def _times(report: Report) -> Iterator[Row]:
    for phase in report.phases:
        for timing in timings(report, phase):
            section = timing.section
            identity = {"phase": phase, "arm": timing.arm, "cell": timing.cell, "is_default": timing.default}
            identity |= {"source": section.source, "label": section.label, "devices": section.devices}
            identity |= {"steps": section.steps, "unjoined_events": section.unjoined_events}
            per_step = section.per_step
            yield {**identity, "split_by": "all", "part": "", **encode(per_step)}
            for by, parts in {"axes": per_step.by_axes, "kind": per_step.by_kind, "scope": per_step.by_scope}.items():
                for part, times in parts.items():
                    yield {**identity, "split_by": by, "part": part, **encode(times)}
            for verdict in _SHOWN[:-1]:
                of_verdict = section.by_verdict.get(verdict)
                yield {**identity, "split_by": "verdict", "part": verdict, **(encode(of_verdict) if of_verdict else {})}
            for device in section.per_device:
                yield {**identity, "split_by": "device", "part": str(device.device), **encode(device)}
            for step in section.each_step:
                yield {**identity, "split_by": "step", "part": str(step.step), **encode(step)}


def _list_rows(report: Report, name: str) -> Iterator[Row]:
    """One list of every program's section; a section without it (the matrix of many devices) adds no row."""
    for phase in report.phases:
        for timing in timings(report, phase):
            rows = getattr(timing.section, name)
            identity = {"phase": phase, "arm": timing.arm, "cell": timing.cell, "source": timing.source}
            yield from ({**identity, **encode(row)} for row in rows or ())


def _write(path: Path, columns: Mapping[str, str], parts: Iterator[tuple[ProgramTimeline, pd.DataFrame]]) -> None:
    """Write one row group per program, so that not all events are in memory as one table.

    columns: those of `parts`, and `stands_for`.
    """
    schema = pa.schema([(name, _WORDS) for name in _WHOSE] + [(name, _TYPES[kind]) for name, kind in columns.items()])
    with pq.ParquetWriter(path, schema, compression="zstd") as out:
        for program, table in parts:
            num_represented = {device: len(devices) for device, devices in program.timeline.stands_for.items()}
            rows = table.assign(stands_for=table["device"].map(num_represented).fillna(1))
            identity = dict(
                zip(_WHOSE, (program.arm, program.phase, program.cell, program.timeline.source), strict=True)
            )
            arrays = [_repeat_word(word, len(rows)) for word in identity.values()]
            arrays += [pa.array(rows[name], from_pandas=True).cast(schema.field(name).type) for name in columns]
            out.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _repeat_word(word: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([word]))
