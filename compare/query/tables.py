"""What can be asked for: each table, its columns, and their units.

A table is a Parquet file of each run folder, a part of each report.json that no such file has, or made of others.
"""

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

from compare.query.runs import RUN_COLUMNS
from compare.render import table_columns
from compare.render.time import timeline_columns
from compare.report.model.codec import hinted_fields, plain_options
from compare.report.model.findings import Attribution
from compare.report.model.timing import (
    CollectiveTimes,
    DeviceTimes,
    Gaps,
    NetworkUse,
    Operation,
    PipelinePhase,
    PipelineTimes,
    StageTimes,
    Straggler,
    Tick,
    Volume,
)
from compare.timeline.columns import STEP_COLUMNS

Columns = Mapping[str, str]
"""Names, and DuckDB's types."""

_TYPES = {
    table_columns.TEXT: "VARCHAR",
    table_columns.WHOLE: "BIGINT",
    table_columns.NUMBER: "DOUBLE",
    table_columns.TRUTH: "BOOLEAN",
    "category": "VARCHAR",
    "int32": "INTEGER",
    "float64": "DOUBLE",
}
"""Of the columns of Parquet files."""

_LEAVES = {str: "VARCHAR", bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}
"""Of the fields of a report."""

_UNITS = {
    "executions": "per step",
    "count": "per step",
    "up_phases": "per step",
    "overlap": "share",
    "up": "share",
    "communication_fraction": "share",
    "bubble_share": "share",
    "gpipe_bubble_share": "share",
    "last_share": "share",
    "duty_cycle": "share",
    "emitted_over_inherent": "ratio",
    "matrix_flops": "FLOPs",
    "vector_ops": "elements",
    "compute_over_floor": "ratio",
    "ici_byte_hops": "byte hops",
}
"""Of columns whose name does not say their unit."""

_WORDS = {"bytes_per_s": "bytes/s", "bytes": "bytes", "ns": "ns", "json": "JSON", "j": "J", "w": "W"}
"""Words of a column's name that say its unit: `step_wire_bytes`, `wire_bytes_per_token`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table over all runs.  `columns` are its own: its rows also have those of their run's case."""

    says: str
    """What one row is."""
    columns: Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable(Table):
    """A part of each report.json: of every program, or of every phase."""

    path: tuple[str, ...]
    """Where it stands in a program, or in a phase."""
    shape: str
    """`list`, `record`, or `map`, whose keys are the column `axes`."""
    fields: Mapping[str, str]
    """Column -> the field that it is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedTable(Table):
    """Made from other tables by a SELECT."""

    sql: str


def unit_of(column: str, duckdb_type: str) -> str:
    """`bytes`, `ns`, `per step` …; of what has no unit what kind of value it is."""
    if column in _UNITS:
        return _UNITS[column]
    for word, unit in _WORDS.items():
        if f"_{word}_" in f"_{column}_":
            return unit
    return {"VARCHAR": "text", "VARCHAR[]": "text", "BOOLEAN": "yes or no"}.get(duckdb_type, "number")


def _parquet(says: str, columns: Mapping[str, str]) -> Table:
    return Table(says=says, columns={name: _TYPES[kind] for name, kind in columns.items()})


_OF_PHASE = {"phase": "VARCHAR"}
_OF_PROGRAM = {**_OF_PHASE, "arm": "VARCHAR", "cell": "VARCHAR", "is_default": "BOOLEAN", "source": "VARCHAR"}
_OF_TIMELINE = {"arm": "category", "phase": "category", "cell": "category", "source": "category"}


def _report(
    says: str, record: type, path: str, *, shape: str = "list", rename: Mapping[str, str] = MappingProxyType({})
) -> Table:
    """Of a record's fields those that hold no records themselves.  rename: field -> column."""
    kinds = {part.name: _leaf_type(hint) for part, hint in hinted_fields(record)}
    own = {rename.get(name, name): name for name, kind in kinds.items() if kind}
    whose = _OF_PROGRAM if path.startswith("timing.") else _OF_PHASE
    keys = {"axes": "VARCHAR"} if shape == "map" else {}
    columns = {**whose, **keys, **{column: kinds[name] for column, name in own.items()}}
    return ReportTable(says=says, columns=columns, path=tuple(path.split(".")), shape=shape, fields=own)


def _leaf_type(hint: object) -> str:
    """DuckDB's type of a field, from its type hint; none where records are in it."""
    options = plain_options(hint)
    origin, inner = typing.get_origin(options[0]), typing.get_args(options[0])
    if origin is None:
        return _LEAVES.get(float if float in options else options[0], "")
    inside = _leaf_type(inner[0 if origin is tuple else 1])
    return inside and (f"{inside}[]" if origin is tuple else f"MAP(VARCHAR, {inside})")


TABLES: Mapping[str, Table] = {
    "runs": Table(says="a run folder", columns=RUN_COLUMNS),
    "totals": _parquet("a compiled program: its bytes by verdict, and its modelled energy", table_columns.TOTALS),
    "collectives": _parquet("a collective of a compiled program, in program order", table_columns.COLLECTIVES),
    "inherent": _parquet("a collective that the plan requires", table_columns.INHERENT),
    "differences": _parquet("bytes that a framework has beyond the others", table_columns.DIFFERENCES),
    "attribution": _report("bytes beyond the plan, and which control removes them", Attribution, "attribution"),
    "times": _parquet("a program's mean step, whole or one part of it (split_by, part)", timeline_columns.TIMES),
    "operations": _report("one of the ten longest operations of a step", Operation, "timing.operations"),
    "collective_times": _report("a collective's time in a step", CollectiveTimes, "timing.collectives"),
    "messages": _parquet("messages of one kind and shape", timeline_columns.LISTS["messages"]),
    "matrix": _parquet("what one device sends to another in a step", timeline_columns.LISTS["matrix"]),
    "intervals": _parquet("intervals from traffic of some axes to the next", timeline_columns.LISTS["intervals"]),
    "interval_quantiles": _report("the same, with 41 quantiles of their distribution", Gaps, "timing.intervals"),
    "windows": DerivedTable(
        says="one interval between traffic of different axes, and the bytes that follow it",
        columns={
            "phase": "VARCHAR",
            "arm": "VARCHAR",
            "cell": "VARCHAR",
            "source": "VARCHAR",
            "device": "INTEGER",
            "step": "INTEGER",
            "stands_for": "INTEGER",
            "from_axes": "VARCHAR",
            "to_axes": "VARCHAR",
            "interval_ns": "DOUBLE",
            "payload_bytes_after": "DOUBLE",
            "wire_bytes_after": "DOUBLE",
        },
        sql=files("compare.query").joinpath("windows.sql").read_text(encoding="utf-8"),
    ),
    "network": _report("the network of some axes in a step: up and down", NetworkUse, "timing.network", shape="map"),
    "volume": _report("bytes sent in each equal part of a step", Volume, "timing.volume", shape="map"),
    "pipelines": _report("a pipeline's bubble", PipelineTimes, "timing.pipeline", shape="record"),
    "stages": _report("a stage of a pipeline", StageTimes, "timing.pipeline.stages"),
    "ticks": _report("a tick of a pipeline", Tick, "timing.pipeline.ticks"),
    "pipeline_phases": _report(
        "filling, steady, draining", PipelinePhase, "timing.pipeline.phases", rename={"phase": "pipeline_phase"}
    ),
    "device_times": _report("a device's mean step", DeviceTimes, "timing.per_device"),
    "stragglers": _report("how late a device comes to its collectives", Straggler, "timing.stragglers"),
    "steps": _parquet("a step of a device", {**_OF_TIMELINE, **STEP_COLUMNS, "stands_for": "int32"}),
    "events": _parquet("an execution on a device", {**_OF_TIMELINE, **timeline_columns.EVENTS}),
}
"""By name; docs/metrics.md defines the times and docs/definitions.md the bytes."""
