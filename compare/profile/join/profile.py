"""Read a profile into a timeline: all hosts of a session, joined to the programs that ran."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from compare.hlo.collective import Collective
from compare.hlo.proto import program
from compare.hlo.text.module import Module
from compare.profile.join.carried_programs import ProfilePrograms, read_protos
from compare.profile.join.hosts import Host, hosts_of, merge_hosts, number_by_place, read_spaces
from compare.profile.join.join import Joined, join
from compare.profile.join.profile_steps import find_steps, list_executions, read_annotations
from compare.profile.platforms import tpu
from compare.profile.xplane.device_events import DeviceEvents
from compare.timeline.errors import TimingError
from compare.timeline.programs import OUTSIDE
from compare.timeline.timeline import COMMUNICATION, UNKNOWN, Timeline, add_overlap


def read_profile(
    paths: Sequence[str | Path],
    *,
    axes: Mapping[str, int],
    hlo: Module | None = None,
    rows: Sequence[Collective] = (),
    label: str | None = None,
) -> Timeline:
    """The timeline of one profile.

    paths: the `xplane.pb` files, or Chrome traces, of all its hosts.  axes: name -> size, outermost first; empty: axes
    read `?`.  hlo: the program, for a profile that does not carry its own; rows: its collectives, if they are known
    already.  label: its description in figures.
    `OSError` where a file cannot be opened, `TimingError` where it shows no device events.
    """
    spaces = read_spaces(paths)
    if protos := read_protos(spaces):
        program.prepare()
    hosts = hosts_of(spaces)
    modules = {str(module) for host in hosts for module in host.raw.events["module"].unique()}
    programs = ProfilePrograms(protos, axes=axes, given=hlo, given_rows=rows, modules=modules)
    hosts = number_by_place(hosts, programs)
    raw = merge_hosts(hosts)
    devices = sorted({*raw.events["device"].unique().tolist(), *(device for host in hosts for device in host.devices)})
    fewer = list(_check_axes(axes, devices))
    marks = [find_steps(host.raw, read_annotations(host.space)) for host in hosts]
    frame = pd.concat([host_steps.frame for host_steps in marks], ignore_index=True)
    joined = join(raw, programs)
    if hlo is not None and joined.is_foreign:
        joined = _join_without(joined, raw, ProfilePrograms(protos, axes=axes, modules=modules))
    notes = [note for host in hosts for note in (*host.space.notes, *host.raw.notes)]
    notes += [note for host_steps in marks for note in host_steps.notes]
    events = add_overlap(joined.events, frame)
    return Timeline(
        source=spaces[0].source,
        label=label or spaces[0].label or _label(hosts, devices),
        events=events,
        asides=joined.asides,
        steps=frame,
        executions=pd.concat([list_executions(host.raw) for host in hosts], ignore_index=True),
        step_program=marks[0].program if len({each.program for each in marks}) == 1 else "",
        rates=tpu.device_rates(spaces[0]),
        stands_for=_stands_for(devices, axes) | dict(spaces[0].stands_for),
        unjoined_events=joined.unjoined_events,
        meters=tuple(replace(meter, host=at) for at, host in enumerate(hosts) for meter in host.raw.meters),
        zero_unix_ns=spaces[0].zero_unix_ns,
        notes=tuple(dict.fromkeys((*notes, *_skipped(raw), *fewer, *_outside(events), *joined.notes))),
    )


def _join_without(joined: Joined, raw: DeviceEvents, programs: ProfilePrograms) -> Joined:
    """The same without the given program, where it is another's: what it says of names that it shares is wrong.

    programs: those that the profile carries.
    """
    without = join(raw, programs)
    if without.foreign_events == joined.foreign_events:  # of the profile's own program
        return joined
    note = (
        f"the given program is another's: {joined.foreign_events} of {len(raw.events)} operations are not in it; the "
        "profile is read without it"
    )
    return replace(without, notes=(note, *without.notes))


def _check_axes(axes: Mapping[str, int], devices: Sequence[int]) -> Iterator[str]:
    """A note where the profile shows fewer devices than the mesh; `TimingError` where it shows more."""
    size, shown = math.prod(axes.values()), len(set(devices) - {UNKNOWN})
    spelled = ",".join(f"{axis}={count}" for axis, count in axes.items())
    if axes and shown > size:
        raise TimingError(f"the axes {spelled} make {size} devices; the profile shows {shown}")
    if axes and 0 < shown < size:
        yield f"the profile shows {shown} of the {size} devices"


def _outside(events: pd.DataFrame) -> Iterator[str]:
    """A note on communications outside all steps."""
    comms = events[events["role"] == COMMUNICATION]
    outside = int((comms["step"] < 0).sum())
    if outside:
        yield f"{outside} of {len(comms)} communications {OUTSIDE}"


def _stands_for(devices: Sequence[int], axes: Mapping[str, int]) -> dict[int, tuple[int, ...]]:
    """Each device represents itself; without known devices, the unknown one represents all."""
    known = [device for device in devices if device != UNKNOWN]
    if known or not axes:
        return {device: (device,) for device in known or [UNKNOWN]}
    return {UNKNOWN: tuple(range(math.prod(axes.values())))}


def _label(hosts: Sequence[Host], devices: Sequence[int]) -> str:
    """`measured on 8 TPU devices (TPU v5 lite)`."""
    kinds = {str(kind) for host in hosts for kind in tpu.device_types(host.space)}
    platform = "TPU" if any(tpu.is_tpu(host.space) for host in hosts) else "CPU"
    known = len(set(devices) - {UNKNOWN})
    devices_text = f"{known} {platform} device{'s' * (known != 1)}" if known else f"{platform} devices, not identified"
    return f"measured on {devices_text}" + (f" ({', '.join(sorted(kinds))})" if kinds else "")


def _skipped(raw: DeviceEvents) -> list[str]:
    return [
        f"{what}: {counted} events left out, since what they are is not known" for what, counted in raw.skipped.items()
    ]
