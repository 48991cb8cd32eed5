"""The run folders of a question, and the case of each as one row of facts."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compare.query.errors import QueryError
from compare.report.model.about import About
from compare.report.witnesses import WITNESSES
from compare.run.arms import DEFAULT
from compare.run.folder.made_by import MADE_BY
from compare.run.folder.replace_folder import CASE
from compare.run.folder.untrusted_paths import ABOUT, is_inside
from meshes.case import Case
from meshes.devices.mesh_spec import AXES
from meshes.dims import is_sequence_parallel
from meshes.process.documents import read_json
from meshes.process.errors import MeshError

Fact = str | int | float | bool | None

CASE_COLUMNS = {
    "run": "VARCHAR",
    "model": "VARCHAR",
    "mesh": "VARCHAR",
    "topology": "VARCHAR",
    "generation": "VARCHAR",
    "devices": "BIGINT",
    **dict.fromkeys(AXES, "BIGINT"),
    "sp": "BOOLEAN",
    "batch": "BIGINT",
    "seq": "BIGINT",
    "microbatches": "BIGINT",
    "dtype": "VARCHAR",
    "style": "VARCHAR",
    "loop": "VARCHAR",
    "attention": "VARCHAR",
}
"""Of every row of every table, with DuckDB's types: the run that it is of, and that run's case."""

PACKAGES = ("libtpu", "jaxlib", "jax", "flax", "torch", "torch_xla", "torchax", "transformers", "google-tunix")
"""Distributions whose versions a run's programs record."""

VERSION_COLUMNS = {
    "wirediff": "VARCHAR",
    "wirediff_commit": "VARCHAR",
    "date": "VARCHAR",
    **{name.replace("-", "_"): "VARCHAR" for name in PACKAGES},
}
"""What made a run; null where unknown."""

RUN_COLUMNS = {
    **CASE_COLUMNS,
    "slices": "BIGINT",
    "layers": "BIGINT",
    "experts": "BIGINT",
    "capacity": "DOUBLE",
    **VERSION_COLUMNS,
    "folder": "VARCHAR",
}
"""Of the table `runs`, which has one row a run folder."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run folder, and its row of the table `runs`."""

    folder: Path
    facts: dict[str, Fact]
    tables: frozenset[str]
    """Which it has: one of an earlier version lacks some."""

    def table(self, name: str) -> Path | None:
        """The file of one of its tables, if it has that.  `QueryError` where a link of that name leads elsewhere."""
        path = self.folder / "tables" / f"{name}.parquet"
        if name in self.tables and not is_inside(self.folder, path):
            raise QueryError(f"{path} {'leads out of the run folder' if path.is_file() else 'is no file'}")
        return path if name in self.tables else None


def read_runs(folders: Sequence[Path]) -> list[RunFolder]:
    """Every run folder among these folders and anywhere in them, in order of their paths, each once.

    Raises `QueryError` where a folder is not there or holds none, or a run has no tables or a case that cannot be read.
    """
    names: dict[Path, tuple[Path, str]] = {}
    for folder in folders:
        found = list(_find_runs(folder))
        if not found:
            raise QueryError(f"{folder} {_why_none(folder)}")
        for path in found:
            name = path.relative_to(folder).as_posix() if path != folder else path.resolve().name
            names.setdefault(path.resolve(), (path, name))
    often = Counter(name for _, name in names.values())
    return [_read_run(path, name if often[name] == 1 else path.as_posix()) for path, name in names.values()]


def table_names(runs: Sequence[RunFolder]) -> list[str]:
    """The tables that any of these runs has."""
    return sorted({name for run in runs for name in run.tables})


def _find_runs(folder: Path) -> Iterator[Path]:
    """Hidden folders are left out: what is being written, and what a sweep keeps for itself."""
    for at, inner, files in os.walk(folder, onerror=_refuse):
        if CASE in files:
            inner.clear()
            yield Path(at)
        inner[:] = sorted(name for name in inner if not name.startswith("."))


def _refuse(error: OSError) -> None:
    """A folder that cannot be listed may hold runs, and an answer without them would be wrong."""
    if not isinstance(error, NotADirectoryError | FileNotFoundError):
        raise QueryError(f"{error.filename} cannot be read: {error.strerror}")


def _why_none(folder: Path) -> str:
    if not folder.exists():
        return "is not there; a query has white space in it, and one that ships is asked for by --name"
    return f"holds no run folder: there is no {CASE} in it" if folder.is_dir() else "is no folder of runs"


def _read_run(folder: Path, name: str) -> RunFolder:
    path = folder / CASE
    if not is_inside(folder, path):
        raise QueryError(f"{path} leads out of the run folder")
    try:
        read = read_json(path)
    except MeshError as error:
        raise QueryError(f"{path} is {error}") from None
    try:
        case = Case.from_dict(read)
    except MeshError as error:
        raise QueryError(f"{path} cannot be read: {error}") from None
    names = os.listdir(folder / "tables") if (folder / "tables").is_dir() else []
    tables = frozenset(file.removesuffix(".parquet") for file in names if file.endswith(".parquet"))
    if not tables:
        raise QueryError(f"{folder} has no tables; python -m compare.report {folder} draws them")
    versions = {**_made_by(read), **_versions(folder)}
    return RunFolder(folder, _facts(case, folder=folder, name=name, versions=versions), tables)


def _made_by(case_json: Mapping[str, object]) -> dict[str, Fact]:
    """Of this project: its version and commit, and the day."""
    words = case_json.get(MADE_BY)
    return {key: word for key, word in words.items() if isinstance(word, str)} if isinstance(words, Mapping) else {}


def _versions(folder: Path) -> dict[str, Fact]:
    """Package -> its version, of all programs with default settings and of the witnesses; several are listed."""
    found: dict[str, set[str]] = {}
    for path in folder.glob(f"*/*/*/{ABOUT}"):
        if path.parent.name in (DEFAULT.name, *WITNESSES) and is_inside(folder, path):
            try:
                versions = About.from_json(read_json(path)).versions or {}
            except (OSError, ValueError):
                continue  # the report of the run says that it is damaged
            for name, version in versions.items():
                found.setdefault(name.replace("-", "_"), set()).add(version)
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}


def _facts(case: Case, *, folder: Path, name: str, versions: Mapping[str, Fact]) -> dict[str, Fact]:
    facts: dict[str, Fact] = {
        **dict.fromkeys(VERSION_COLUMNS),
        **versions,
        "run": name,
        "model": case.model.name,
        "mesh": case.plan.name,
        "topology": case.topology.name,
        "generation": case.topology.generation_name,
        "devices": case.mesh.num_devices,
        **case.mesh.axes,
        "sp": is_sequence_parallel(case.plan.rules),
        **{word: getattr(case, word) for word in ("batch", "seq", "microbatches", "dtype", "style", "loop")},
        "attention": case.attention,
        "slices": case.topology.slices,
        "layers": case.model.layers,
        "experts": case.model.experts,
        "capacity": case.capacity,
        "folder": folder.as_posix(),
    }
    return {column: facts[column] for column in RUN_COLUMNS}
