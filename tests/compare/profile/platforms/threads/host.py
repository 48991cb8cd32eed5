"""Hosts made by hand whose threads are devices, as XLA:CPU shows them.  Times are in ns."""

import numpy as np

from compare.profile.platforms.cpu import op_events
from compare.profile.platforms.threads.thread_timeline import Threads
from compare.profile.xplane.reader import read_file
from tests.compare.timeline.spaces import Ref, Space


class Thread:
    def __init__(self, line):
        self.line = line

    def event(self, name, start, end, /, **stats):
        self.line.event(name, start, end - start, stats=stats)
        return self

    def hands_over(self, *numbers, at):
        """Pieces of work, one ns after the other."""
        for later, number in enumerate(numbers):
            self.event("ThreadpoolListener::Record", at + later, at + later, _pt=15, _p=number)
        return self

    def region(self, number, start, end):
        """A piece of work that was handed over."""
        self.event("ThreadpoolListener::StartRegion", start, start, _ct=15, _c=number)
        return self.event("ThreadpoolListener::StopRegion", end, end)

    def launches_all(self, start, end, **stats):
        return self.event("PjRtCpuExecutable::Execute", start, end, _pt=5, _p=0, **stats)

    def launches_one(self, start, end):
        return self.event("PjRtCpuExecutable::ExecuteHelper", start, end)

    def op(self, name, start, end, *, context=None, module="jit_f", **stats):
        about = {"hlo_op": Ref(name), "hlo_module": Ref(module), "program_id": 0}
        return self.event(name, start, end, **about, **stats, **({} if context is None else {"_pt": 0, "_p": context}))

    def ends(self, name, at, *, context):
        return self.event(f"end: {name}", at, at + 0.1, _ct=0, _c=context)

    def completes(self, start, end, **stats):
        return self.event("ThunkExecutor::Execute (wait for completion)", start, end, **stats)

    def meets(self, start, end, *, id, group, op_id=1):
        devices = ",".join(map(str, group))
        key = f"all reduce RendezvousKey{{run_id=RunId: 0, global_devices=[{devices}], op_id={op_id}}}"
        return self.event("Rendezvous", start, end, num_threads=len(group), name=Ref(key), id=id)

    def marks(self, step, start, end, word="train"):
        return self.event(word, start, end, _r=1, step_num=step)


class Host:
    def __init__(self):
        self.space = Space()
        self.plane = self.space.plane("/host:CPU")
        self.threads = {}

    def __getitem__(self, name):
        if name not in self.threads:
            self.threads[name] = Thread(self.plane.line(name))
        return self.threads[name]

    def raw(self, folder):
        return op_events(read_file(self.space.write(folder)))

    def axis(self, folder):
        """The threads, and which of the events are operations."""
        space = read_file(self.space.write(folder))
        threads = Threads(space.planes[0].lines, space.zero_ns)
        return threads, np.flatnonzero(np.asarray(threads.words("hlo_op") != ""))

    def launch(self, *, at, devices, number, waits=False, apart=10):
        """A program of several devices, launched one after the other on a thread each.

        Device d comes at `at` + 60 + `apart` · d for 8, and hands over its operations as `number` + 50 + d, or waits.
        """
        self["main"].launches_all(at, at + 50).hands_over(*range(number, number + devices), at=at + 1)
        for device in range(devices):
            begins = at + 60 + apart * device
            self[f"launcher {device}"].region(number + device, begins - 1, begins + 9).launches_one(begins, begins + 8)
            if not waits:
                self[f"launcher {device}"].hands_over(number + 50 + device, at=begins + 5)


def list_rows(events, *columns):
    return [tuple(row) for row in events.sort_values("start_ns")[list(columns)].itertuples(index=False)]
