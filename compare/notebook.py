"""What a notebook types first: `from compare import run, load_run, plan, read_profile`; each answer shows itself.

These are the commands of the same names without a terminal; `collectives`, `judge` and their like, for a program of
one's own, stand in `compare.diff.own.api`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from compare.hlo.devices.axes import read_axes
from compare.hlo.text.files import read_file
from compare.metrics.summary import summarize_tracks
from compare.profile.join import profile
from compare.profile.xplane.reader import profile_files
from compare.render.units import count_text, time_text
from compare.report.model.report import Report
from compare.report.model.timing import TraceSummary
from compare.report.plan import plan as plan_case
from compare.run.arms import parse_arms, parse_controls
from compare.run.errors import WorkError
from compare.run.folder.replace_folder import CASE
from compare.timeline.timeline import Timeline
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTracks
from compare.whole_run import make_run
from meshes.case import Case
from meshes.process.documents import read_json

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation


SHOWN = ("phase", "arm", "cell", "wire_bytes", "inherent", "inflated", "induced", "framework_induced", "step_ns")
"""Columns of a run's totals that a notebook shows."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedRun:
    """A run folder that was judged: its report, and its tables."""

    folder: Path
    report: Report

    @property
    def totals(self) -> pd.DataFrame:
        """A row for each program: phase, arm, cell, bytes of a step by verdict (mean over devices), step_ns."""
        rows = []
        for phase, of_phase in self.report.phases.items():
            for arm, programs in of_phase.arms.items():
                for program in programs:
                    words = {"phase": phase, "arm": arm, "cell": program.cell, "status": program.status}
                    step_ns = program.timing.per_step.step_ns if program.timing else None
                    rows.append(words | (asdict(program.totals) if program.totals else {}) | {"step_ns": step_ns})
        return pd.DataFrame(rows)

    def table(self, name: str) -> pd.DataFrame:
        """One of the folder's tables, like `collectives`; `python -m compare.query FOLDER` lists them with columns."""
        path = self.folder / "tables" / f"{name}.parquet"
        if not path.is_file():
            known = ", ".join(sorted(file.stem for file in path.parent.glob("*.parquet")))
            raise WorkError(f"{self.folder} has no table {name!r}; it has {known or 'none'}")
        return pd.read_parquet(path)

    def query(self, sql: str) -> "DuckDBPyRelation":
        """A question in SQL, or the name of a query that ships, over this run."""
        from compare.query import query_runs

        return query_runs(sql, self.folder)

    def __repr__(self) -> str:
        return f"{self.report.sentence}\n{self.folder}"

    def _repr_html_(self) -> str:
        table = self.totals.reindex(columns=list(SHOWN))
        return f"<p>{escape(self.report.sentence)}</p>{table.to_html(index=False, na_rep='–')}"


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A profile that was read: its timeline, and the means of a step of one device."""

    timeline: Timeline
    summary: TraceSummary
    times: pd.DataFrame
    """Communication of a step by axes and kind, ns."""

    def __repr__(self) -> str:
        times = self.summary.per_step
        steps, devices = count_text(self.summary.steps, "step"), count_text(self.summary.devices, "device")
        return f"{self.summary.label}: {steps} of {time_text(times.step_ns)} on {devices}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.times.to_html(na_rep='–')}"


def run(
    mesh: str,
    *,
    model: str = "llama-3.1-8b",
    phases: str | Sequence[str] = ("prefill", "decode"),
    arms: str | Sequence[str] = "jax,torchxla",
    controls: str | Sequence[str] = "partitioner,attention",
    out: str | Path = "runs",
    no_cache: bool = False,
    chip: str | Path | None = None,
    **words: Any,
) -> LoadedRun:
    """Compile a model in both frameworks for a mesh, judge it, and write the run folder: `python -m compare.run`.

    mesh: `"tp4pp2"`, `"tp8@v6e:2x4"`, or a TOML spec file.  words: further ones of a `Case`, like `batch=8, seq=1024`.
    phases, arms, controls: lists, or one text, `"jax,torchxla"`.  chip: the file of `--chip`.  Progress goes to stderr.
    Raises `ValueError`, one line, for a request that cannot be.

        run("tp8", phases="decode", arms="jax", controls="none").totals
    """
    report, folder, _ = make_run(
        _read_case(mesh, model, phases, words),
        arms=parse_arms(_joined(arms)),
        controls=parse_controls(_joined(controls)),
        out=Path(out),
        no_cache=no_cache,
        chip=Path(chip) if chip else None,
    )
    return LoadedRun(folder, report)


def load_run(folder: str | Path) -> LoadedRun:
    """A run folder that is there, with neither framework installed.  Raises `WorkError`, one line, where it is none.

    load_run("docs/example-run").query("volume-by-axis").df()
    """
    path = Path(folder) / "report.json"
    if not path.is_file():
        is_run = path.with_name(CASE).is_file()
        how = f"python -m compare.report {folder} writes it" if is_run else f"a run folder has one, and {CASE}"
        raise WorkError(f"{folder} has no report.json; {how}")
    try:
        return LoadedRun(Path(folder), Report.from_json(read_json(path)))
    except ValueError as error:
        raise WorkError(f"{path}: {error}") from None


def plan(
    mesh: str, *, model: str = "llama-3.1-8b", phases: str | Sequence[str] = ("prefill", "decode"), **words: Any
) -> pd.DataFrame:
    """The required collectives of a case, a row each: `python -m compare.plan`.  words: as of `run`.

    plan("tp4pp2", phases="decode", batch=8)
    """
    contract = plan_case(_read_case(mesh, model, phases, words))
    rows = [{"phase": phase} | asdict(row) for phase, part in contract.phases.items() for row in part.inherent]
    return pd.DataFrame(rows).drop(columns=["served_bytes", "unserved_bytes"])


def _read_case(mesh: str, model: str, phases: str | Sequence[str], words: Mapping[str, Any]) -> Case:
    known = sorted({field.name for field in fields(Case)} - {"plan", "model", "phases"})
    for word in words:
        if word not in known:
            raise WorkError(f"a case has no {word!r}; it has mesh, model, phases, {', '.join(known)}")
    return Case.read(mesh, model_name=model, phases=tuple(_joined(phases).split(",")), **words)


def _joined(words: str | Sequence[str]) -> str:
    return words if isinstance(words, str) else ",".join(words)


def read_profile(
    path: str | Path | Sequence[str | Path], *, axes: Mapping[str, int] | str = "", hlo: str | Path | None = None
) -> Profile:
    """A profile of TPUs or CPU devices: `xplane.pb`, a Chrome trace, or the folder of one session.

    axes: name -> size, outermost first, or `"data=2,tensor=4"`.  hlo: the program's text, if the profile holds none.
    Raises `OSError` where a file cannot be opened, `ValueError`, one line, where it holds no profile.

        read_profile("trace", axes="data=2,tensor=4").times
    """
    sizes = read_axes(axes or None) if isinstance(axes, str) else axes
    paths = profile_files(path) if isinstance(path, str | Path) else path
    timeline = profile.read_profile(paths, axes=sizes, hlo=read_file(str(hlo)) if hlo else None)
    tracks = DeviceTracks.of(timeline)
    return Profile(timeline, summarize_tracks(tracks), measure_times(tracks, by=["axes", "kind"]).means())
