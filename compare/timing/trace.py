"""A profile as a timeline: all hosts of a session, joined to the programs that ran."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from compare.program.text import Module
from compare.timing import cpu, tpu, xplane
from compare.timing.errors import TimingError
from compare.timing.join import join
from compare.timing.programs import Programs, protos
from compare.timing.raw import Raw, stacked
from compare.timing.space import Space, earliest
from compare.timing.steps import annotations, steps
from compare.timing.timeline import UNKNOWN, Timeline, settled

_NO_SCOPES: Mapping[str, frozenset[str]] = MappingProxyType({})
_GPU = "/device:GPU:"
_SHOWN = 6


@dataclass(frozen=True, slots=True)
class _Host:
    """One file, and what its devices did."""

    space: Space
    raw: Raw

    @property
    def devices(self) -> list[int]:
        return sorted(set(self.raw.events["device"].unique().tolist()) - {UNKNOWN})


def read(
    paths: Sequence[str | Path],
    *,
    axes: Mapping[str, int],
    hlo: Module | None = None,
    label: str | None = None,
    scopes_of: Mapping[str, frozenset[str]] = _NO_SCOPES,
) -> Timeline:
    """The timeline of one profile.

    paths: the `xplane.pb` files of all its hosts.  axes: sizes by name, outermost first; none, and axes read `?`.
    hlo: the program, for a profile that does not carry its own.  label: what figures say of it.  scopes_of: as
    `collectives` takes it.  `OSError` where a file can't be opened, `TimingError` where there is nothing to tell.
    """
    hosts = _numbered(_hosts(paths))
    raw = _together(hosts)
    devices = sorted(raw.events["device"].unique().tolist())
    fewer = list(_check_axes(axes, devices))
    programs = Programs(protos(host.space for host in hosts), axes=axes, scopes_of=scopes_of, given=hlo)
    marks = [steps(host.raw, annotations(host.space)) for host in hosts]
    frame = pd.concat([found.frame for found in marks], ignore_index=True)
    joined = join(raw, programs)
    told = [note for host in hosts for note in (*host.space.notes, *host.raw.notes)]
    told += [note for found in marks for note in found.notes]
    return Timeline(
        source="measured",
        label=label or _label(hosts, devices),
        events=settled(joined.events, frame),
        steps=frame,
        stands_for=_stands_for(devices, axes),
        unjoined_events=joined.unjoined_events,
        notes=tuple(dict.fromkeys((*told, *_skipped(raw), *fewer, *joined.notes))),
    )


def _hosts(paths: Sequence[str | Path]) -> list[_Host]:
    """The files that show what devices did, by name; a file of no device is said in a note of the first."""
    spaces = [xplane.read_file(path) for path in sorted(paths, key=_natural)]
    zero = earliest([plane for space in spaces for plane in space.planes])
    hosts = [_Host(space, _raw(replace(space, zero_ns=zero))) for space in spaces]
    hosts = [_Host(replace(host.space, zero_ns=zero), host.raw) for host in hosts]
    silent = [host for host in hosts if not len(host.raw.events)]
    told = [host for host in hosts if len(host.raw.events)]
    if not told:
        raise TimingError(f"{_named(spaces)}: {_why_silent(spaces)}")
    notes = [f"{Path(host.space.path).name} shows no device at work" for host in silent]
    return [_Host(replace(told[0].space, notes=(*told[0].space.notes, *notes)), told[0].raw), *told[1:]]


def _raw(space: Space) -> Raw:
    return tpu.op_events(space) if tpu.is_tpu(space) else cpu.op_events(space)


def _why_silent(spaces: Sequence[Space]) -> str:
    names = [plane.name for space in spaces for plane in space.planes]
    if any(name.startswith(_GPU) for name in names):
        return "a profile of GPUs; profiles of TPUs and of CPU devices can be read"
    shown = ", ".join(repr(name) for name in names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"no operation of any device is in it; its planes are {shown}"


def _named(spaces: Sequence[Space]) -> str:
    return spaces[0].path if len(spaces) == 1 else str(Path(spaces[0].path).parent)


def _natural(path: str | Path) -> list[tuple[int, str]]:
    """Host 10 comes after host 2."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", Path(path).name)]


def _numbered(hosts: list[_Host]) -> list[_Host]:
    """Devices numbered through all hosts.  Where hosts number their own from 0, each begins behind those before it."""
    numbers = [device for host in hosts for device in host.devices]
    if len(set(numbers)) == len(numbers):
        return hosts
    first, found = 0, []
    for host in hosts:
        raw = host.raw
        marks, executions = (None if part is None else _moved(part, first) for part in (raw.steps, raw.executions))
        raw = replace(raw, events=_moved(raw.events, first), steps=marks, executions=executions)
        found.append(_Host(host.space, raw))
        first += max(host.devices, default=-1) + 1
    note = f"{len(hosts)} hosts number their devices alike: they are numbered through, in the order of the files' names"
    return [_Host(replace(found[0].space, notes=(*found[0].space.notes, note)), found[0].raw), *found[1:]]


def _moved(frame: pd.DataFrame, first: int) -> pd.DataFrame:
    return frame.assign(device=frame["device"].where(frame["device"] == UNKNOWN, frame["device"] + first))


def _together(hosts: Sequence[_Host]) -> Raw:
    """All hosts' operations."""
    raws = [host.raw for host in hosts]
    skipped = Counter[str]()
    for raw in raws:
        skipped.update(raw.skipped)
    return Raw(
        events=stacked([raw.events for raw in raws]),
        spanning_lines=frozenset().union(*(raw.spanning_lines for raw in raws)),
        other_cores=frozenset().union(*(raw.other_cores for raw in raws)),
        one_at_a_time=all(raw.one_at_a_time for raw in raws),
        skipped=skipped,
    )


def _check_axes(axes: Mapping[str, int], devices: Sequence[int]) -> Iterator[str]:
    """What is to be said where the profile shows fewer devices than the mesh has; more cannot be."""
    size, shown = math.prod(axes.values()), len(set(devices) - {UNKNOWN})
    spelled = ",".join(f"{axis}={count}" for axis, count in axes.items())
    if axes and shown > size:
        raise TimingError(f"the axes {spelled} make {size} devices; the profile shows {shown}")
    if axes and 0 < shown < size:
        yield f"the profile shows {shown} of the {size} devices"


def _stands_for(devices: Sequence[int], axes: Mapping[str, int]) -> dict[int, tuple[int, ...]]:
    """Each device for itself; where none is known the unknown one for all."""
    known = [device for device in devices if device != UNKNOWN]
    if known or not axes:
        return {device: (device,) for device in known or [UNKNOWN]}
    return {UNKNOWN: tuple(range(math.prod(axes.values())))}


def _label(hosts: Sequence[_Host], devices: Sequence[int]) -> str:
    """`measured on 8 TPU devices (TPU v5 lite)`."""
    kinds = {str(kind) for host in hosts for kind in tpu.device_types(host.space)}
    platform = "TPU" if any(tpu.is_tpu(host.space) for host in hosts) else "CPU"
    known = len(set(devices) - {UNKNOWN})
    many = f"{known} {platform} device{'s' * (known != 1)}" if known else f"{platform} devices that are not told apart"
    return f"measured on {many}" + (f" ({', '.join(sorted(kinds))})" if kinds else "")


def _skipped(raw: Raw) -> list[str]:
    return [
        f"{what}: {counted} events left out, since what they are is not known" for what, counted in raw.skipped.items()
    ]
