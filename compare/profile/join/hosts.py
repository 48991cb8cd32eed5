"""The hosts of one profile, one file each: their devices get unique numbers, and their events are merged."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from compare.profile.chrome.space import is_json, read_trace
from compare.profile.join.carried_programs import ProfilePrograms
from compare.profile.platforms import cpu, tpu
from compare.profile.xplane import reader
from compare.profile.xplane.device_events import DeviceEvents, concat_frames
from compare.profile.xplane.xspace import Space, one_clock
from compare.timeline.errors import TimingError
from compare.timeline.timeline import UNKNOWN

_GPU = "/device:GPU:"
_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Host:
    """One file, and the events of its devices."""

    space: Space
    raw: DeviceEvents

    @property
    def devices(self) -> list[int]:
        """Devices with operations or step marks."""
        frames = [part for part in (self.raw.events, self.raw.steps) if part is not None]
        return sorted({device for part in frames for device in part["device"].unique().tolist()} - {UNKNOWN})


def read_spaces(paths: Sequence[str | Path]) -> list[Space]:
    """Read the files, in order of name, with a common time zero for files of one clock.

    A file without a profile becomes a note if others have one.  `OSError` where a file cannot be opened, `TimingError`
    where none holds a profile.
    """
    spaces: list[Space] = []
    lost: dict[str, TimingError] = {}
    for path in sorted(paths, key=_natural):
        try:
            spaces.append(read_trace(path) if is_json(path) else reader.read_file(path))
        except TimingError as error:
            lost[f"{Path(path).name} is left out: {str(error).removeprefix(f'{path}: ')}"] = error
    if not spaces:
        raise next(iter(lost.values()))
    zeros = [space.zero_ns for space in spaces]
    spaces = [
        replace(
            space,
            zero_ns=min(zero for zero in zeros if one_clock(zero, space.zero_ns)),
            notes=_of_file(space, several=len(paths) > 1),
        )
        for space in spaces
    ]
    spaces[0] = replace(spaces[0], notes=(*spaces[0].notes, *lost))
    return spaces


def _of_file(space: Space, *, several: bool) -> tuple[str, ...]:
    """The notes of a file, prefixed with its name if there are several files."""
    return tuple(f"{Path(space.path).name}: {note}" for note in space.notes) if several else space.notes


def _natural(path: str | Path) -> list[tuple[int, str]]:
    """Sort key: host 10 comes after host 2."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", Path(path).name)]


def hosts_of(spaces: Sequence[Space]) -> list[Host]:
    """The hosts with device events; a host without any becomes a note.  `TimingError` where no host has any."""
    if any(plane.name.startswith(_GPU) and plane.lines for space in spaces for plane in space.planes):
        raise TimingError(f"{_named(spaces)}: a profile of GPUs; profiles of TPUs and of CPU devices can be read")
    all_hosts = [Host(space, _raw(space)) for space in spaces]
    active = [host for host in all_hosts if len(host.raw.events)]
    if not active:
        raise TimingError(f"{_named(spaces)}: {_why_silent(spaces)}")
    for host in all_hosts:
        if not len(host.raw.events):
            for note in (*host.space.notes, f"{Path(host.space.path).name} shows no device at work"):
                active = _noted(active, note)
    return _numbered(active)


def _raw(space: Space) -> DeviceEvents:
    try:
        return tpu.op_events(space) if tpu.is_tpu(space) else cpu.op_events(space)
    except TimingError as error:
        raise TimingError(f"{space.path}: {error}") from None


def _why_silent(spaces: Sequence[Space]) -> str:
    names = [plane.name for space in spaces for plane in space.planes]
    shown = ", ".join(repr(name) for name in names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    lost = "".join(f"; {note}" for space in spaces for note in space.notes)
    return f"no operation of any device is in it; its planes are {shown}{lost}"


def _named(spaces: Sequence[Space]) -> str:
    return spaces[0].path if len(spaces) == 1 else str(Path(spaces[0].path).parent)


def _numbered(hosts: list[Host]) -> list[Host]:
    """Hosts with unique device numbers: where hosts number their own from 0, each is shifted behind those before it."""
    numbers = [device for host in hosts for device in host.devices]
    if len(set(numbers)) == len(numbers):
        return hosts
    first, renumbered = 0, []
    for host in hosts:
        renumbered.append(_renumbered(host, {device: device + first for device in host.devices}))
        first += max(host.devices, default=-1) + 1
    return _noted(renumbered, f"{len(hosts)} hosts use the same device numbers: devices are renumbered, by file name")


def number_by_place(hosts: list[Host], programs: ProfilePrograms) -> list[Host]:
    """Number TPUs by their index in the program, which may differ from the runtime's numbers."""
    devices = [device for host in hosts for device in host.devices]
    modules = Counter[str]()
    for host in hosts:
        modules.update({str(name): count for name, count in host.raw.events["module"].value_counts().items()})
    placement = programs.placement(modules.most_common(1)[0][0])
    ours = all(tpu.is_tpu(host.space) for host in hosts)
    if not ours or placement == tuple(range(len(placement))) or not set(devices) <= set(placement):
        return hosts
    indices = {device: index for index, device in enumerate(placement)}
    renumbered = [_renumbered(host, indices) for host in hosts]
    return _noted(
        renumbered, "devices are numbered by their places in the program, which are not the runtime's numbers"
    )


def _noted(hosts: list[Host], note: str) -> list[Host]:
    first = hosts[0]
    return [Host(replace(first.space, notes=(*first.space.notes, note)), first.raw), *hosts[1:]]


def _renumbered(host: Host, numbers: Mapping[int, int]) -> Host:
    """The host with other device numbers."""
    raw = host.raw
    events, marks, runs = (
        part if part is None else part.assign(device=part["device"].replace(dict(numbers)).astype(np.int32))
        for part in (raw.events, raw.steps, raw.executions)
    )
    assert events is not None
    meters = tuple(replace(meter, device=numbers.get(meter.device, meter.device)) for meter in raw.meters)
    return Host(host.space, replace(raw, events=events, steps=marks, executions=runs, meters=meters))


def merge_hosts(hosts: Sequence[Host]) -> DeviceEvents:
    """The device events of all hosts."""
    raws = [host.raw for host in hosts]
    skipped = Counter[str]()
    for raw in raws:
        skipped.update(raw.skipped)
    return DeviceEvents(
        events=concat_frames([raw.events for raw in raws]),
        spanning_lines=frozenset().union(*(raw.spanning_lines for raw in raws)),
        other_cores=frozenset().union(*(raw.other_cores for raw in raws)),
        one_at_a_time=all(raw.one_at_a_time for raw in raws),
        copies_compute=all(raw.copies_compute for raw in raws),
        skipped=skipped,
    )
