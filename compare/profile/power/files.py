"""Measured power in files of other tools: a folder of CSV files, a log of Zeus, or its `Measurement`s as JSON."""

from dataclasses import dataclass, replace
from pathlib import Path

from compare.profile.power.csv_files import is_metric, read_metrics
from compare.profile.power.zeus import Window, is_log, is_measurements, read_log, read_measurements
from compare.timeline.errors import TimingError
from compare.timeline.series import Series
from compare.timeline.timeline import Timeline
from meshes.process.documents import read_json
from meshes.process.errors import MeshError

_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerFiles:
    """What some files hold."""

    label: str
    series: tuple[Series, ...] = ()
    """Times in ns since `zero_unix_ns`."""
    zero_unix_ns: int | None = None
    windows: tuple[Window, ...] = ()
    notes: tuple[str, ...] = ()


def holds_power(path: Path) -> bool:
    """Whether a file or folder is one of measured power, and not a profile."""
    if path.is_dir():
        return any(map(is_metric, path.glob("*.csv"))) and not any(path.rglob("*.xplane.pb*"))
    if path.suffix == ".csv":
        return True
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        return is_measurements(read_json(path))
    except (MeshError, OSError):
        return False


def read_power(path: Path, *, per_host: int | None = None) -> PowerFiles:
    """Measured power of a folder or a file.

    `OSError` where it can't be opened, `TimingError`, one line, where it holds none.
    """
    if path.is_dir():
        files = [file for file in path.glob("*.csv") if is_metric(file)]
        if not files:
            raise TimingError(f"{path}: no measured power; files are named like gpu_power_0.csv, a metric and a rank")
        return _metrics(files, path, per_host)
    if path.suffix == ".json" or is_log(path):
        measured = read_measurements(path) if path.suffix == ".json" else read_log(path)
        return PowerFiles(label=f"measured by Zeus ({path.name})", windows=measured.windows, notes=measured.notes)
    if not is_metric(path):
        raise TimingError(
            f"{path}: no measured power; a log of Zeus begins with start_time,window_name,elapsed_time, and a file of "
            "samples is named like gpu_power_0.csv, a metric and a rank"
        )
    return _metrics([path], path, per_host)


def _metrics(files: list[Path], path: Path, per_host: int | None) -> PowerFiles:
    samples = read_metrics(files, per_host=per_host)
    return PowerFiles(
        label=f"measured by {len(files)} CSV files ({path.name[:_SHOWN]})",
        series=samples.series,
        zero_unix_ns=samples.zero_unix_ns,
        notes=samples.notes,
    )


def add_power(timeline: Timeline, files: PowerFiles) -> Timeline:
    """The timeline with the meters of files, by the wall clock of both; rank n is taken for device n.

    A note in place of them where the clock of the profile is unknown, or no sample falls into its steps.
    """
    notes = list(files.notes)
    series: tuple[Series, ...] = ()
    if files.zero_unix_ns is None:
        notes.append(f"{files.label}: windows without samples cannot be joined to steps")
    elif timeline.zero_unix_ns is None:
        notes.append(f"{files.label}: the profile does not say when it began, so that nothing is joined to its steps")
    else:
        shift = float(files.zero_unix_ns - timeline.zero_unix_ns)
        series = tuple(replace(part, times_ns=part.times_ns + shift) for part in files.series)
        begin = timeline.steps["start_ns"].min()
        end = (timeline.steps["start_ns"] + timeline.steps["duration_ns"]).max()
        if not any(part.times_ns[0] < end and part.times_ns[-1] > begin for part in series):
            away = (min(part.times_ns[0] for part in series) - begin) / 1e9
            notes.append(f"{files.label}: its samples begin {away:+,.0f} s from the first step: nothing is joined")
            series = ()
    return replace(timeline, meters=(*timeline.meters, *series), notes=(*timeline.notes, *notes))
