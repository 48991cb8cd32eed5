"""The file of a study: groups of cases, each a sweep or several."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from compare.run.choices import DEFAULT_CONTROLS
from docs.study.build.errors import StudyError
from meshes.choices import CHOICES
from meshes.process.documents import read_toml
from meshes.process.errors import MeshError

_SHARED = ("topology", "controls", "witnesses", "phases", "batch", "seq")
"""What the file may say once for all groups."""

_BATCH, _SEQ = 8, 1024
"""As `compare.sweep` has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Each model on each mesh, for each batch and each sequence."""

    name: str
    models: tuple[str, ...]
    meshes: tuple[str, ...]
    topology: str
    """Of every mesh that names none; empty: the smallest slice."""
    controls: tuple[str, ...]
    """Words of `compare.run --controls`."""
    witnesses: tuple[str, ...]
    """Names of `compare.run --witness`."""
    phases: tuple[str, ...]
    batch: tuple[int, ...]
    seq: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceChoice:
    """A program whose timeline ships with the study."""

    run: str
    """The name of its run folder."""
    arm: str
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What a study file says."""

    title: str
    folder: Path
    """Of the file: its text and its queries are there, and what is made goes there."""
    groups: tuple[Group, ...]
    traces: tuple[TraceChoice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCommand:
    """One sweep of a group: its folder below that of the runs, and the options of `compare.sweep`."""

    folder: str
    options: tuple[str, ...]


def read_study(path: Path) -> Study:
    """Read a study file.  Raises `StudyError`, one line, where it cannot be read or says what is not known."""
    try:
        table = read_toml(path)
    except OSError as error:
        raise StudyError(f"{path} cannot be opened: {error.strerror}") from None
    except MeshError as error:
        raise StudyError(f"{path} is {error}") from None
    shared = {key: value for key, value in table.items() if key in _SHARED}
    if unknown := set(table) - {"title", "group", "trace", *_SHARED}:
        raise StudyError(f"{path} has {_list(unknown)}; known are title, {', '.join(_SHARED)}, [[group]] and [[trace]]")
    groups = table.get("group")
    if not isinstance(groups, list) or not groups or not all(isinstance(group, dict) for group in groups):
        raise StudyError(f"{path} has no [[group]] with name, models and meshes")
    found = tuple(_read_group(shared | group, path=path, number=number) for number, group in enumerate(groups, start=1))
    names = [slug(group.name) for group in found]
    if len(set(names)) < len(names):
        raise StudyError(f"{path} has two groups of one name; each is a folder of its own")
    title = table.get("title", path.stem)
    if not isinstance(title, str):
        raise StudyError(f"title in {path} is {title!r}; write words")
    return Study(title=title, folder=path.parent, groups=found, traces=_read_traces(table.get("trace", []), path))


def _read_traces(rows: object, path: Path) -> tuple[TraceChoice, ...]:
    keys = {"run", "arm", "phase"}
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and set(row) == keys and all(isinstance(word, str) for word in row.values())
        for row in rows
    ):
        raise StudyError(f"{path}: a [[trace]] has run, arm and phase, each a name")
    return tuple(TraceChoice(**row) for row in rows)


def _read_group(words: Mapping[str, object], *, path: Path, number: int) -> Group:
    whose = f"{path}: group {number}"
    if unknown := set(words) - {"name", "models", "meshes", *_SHARED}:
        raise StudyError(f"{whose} has {_list(unknown)}; known are name, models, meshes, {', '.join(_SHARED)}")
    if missing := {"name", "models", "meshes"} - set(words):
        raise StudyError(f"{whose} has no {_list(missing)}")
    if not isinstance(words["name"], str) or not slug(words["name"]):
        raise StudyError(f"{whose}: name is {words['name']!r}; write words")
    topology = words.get("topology", "")
    if not isinstance(topology, str):
        raise StudyError(f'{whose}: topology is {topology!r}; write it like "v6e:2x4"')
    return Group(
        name=words["name"],
        models=_words(words["models"], f"{whose}: models"),
        meshes=_words(words["meshes"], f"{whose}: meshes"),
        topology=topology,
        controls=_words(words.get("controls", list(DEFAULT_CONTROLS)), f"{whose}: controls", some=False),
        witnesses=_words(words.get("witnesses", []), f"{whose}: witnesses", some=False),
        phases=_words(words.get("phases", list(CHOICES["phases"])), f"{whose}: phases"),
        batch=_sizes(words.get("batch", [_BATCH]), f"{whose}: batch"),
        seq=_sizes(words.get("seq", [_SEQ]), f"{whose}: seq"),
    )


def choose_groups(study: Study, names: Sequence[str]) -> Study:
    """The study with these groups alone.  Raises `StudyError` for a name that none has."""
    known = {slug(group.name): group for group in study.groups}
    if unknown := {name for name in names if slug(name) not in known}:
        raise StudyError(f"no group is named {_list(unknown)}; there are {', '.join(known)}")
    return replace(study, groups=tuple(known[slug(name)] for name in names))


def sweep_commands(study: Study) -> Iterator[SweepCommand]:
    """The sweeps of all groups, in the file's order."""
    for group in study.groups:
        meshes = [f"{mesh}@{group.topology}" if group.topology and "@" not in mesh else mesh for mesh in group.meshes]
        for batch, seq in product(group.batch, group.seq):
            yield SweepCommand(
                folder=f"{slug(group.name)}/b{batch}-s{seq}",
                options=(
                    "--models",
                    ",".join(group.models),
                    "--meshes",
                    ",".join(meshes),
                    "--batch",
                    str(batch),
                    "--seq",
                    str(seq),
                    "--controls",
                    ",".join(group.controls) or "none",
                    "--phases",
                    ",".join(group.phases),
                    *(("--witness", ",".join(group.witnesses)) if group.witnesses else ()),
                ),
            )


def slug(name: str) -> str:
    """`Dense plans, 8 chips` -> `dense-plans-8-chips`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _words(value: object, whose: str, *, some: bool = True) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value) or (some and not value):
        raise StudyError(f'{whose} is {value!r}; write a list of names, like ["tp8"]')
    return tuple(value)


def _sizes(value: object, whose: str) -> tuple[int, ...]:
    sizes = value if isinstance(value, list) else [value]
    if not sizes or not all(type(size) is int and size > 0 for size in sizes):
        raise StudyError(f"{whose} is {value!r}; write whole numbers, like [1, 8]")
    return tuple(sizes)


def _list(words: Sequence[str] | set[str]) -> str:
    return ", ".join(sorted(words))
