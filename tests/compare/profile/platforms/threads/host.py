"""Hosts made by hand whose threads are devices, as XLA:CPU shows them.  Times are in ns."""

import numpy as np

from compare.profile.platforms.cpu import op_events
from compare.profile.platforms.cpu_threads import Threads
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

    def op(self, name, start, end, *, context=None, module="jit_f", run_id=1, device_ordinal=0):
        """run_id: `None` where the operation does not say in which run and of which device it is."""
        about = {"hlo_op": Ref(name), "hlo_module": Ref(module), "program_id": 0}
        stats = {} if run_id is None else {"run_id": run_id, "device_ordinal": device_ordinal}
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


def list_rows(events, *columns):
    return [tuple(row) for row in events.sort_values("start_ns")[list(columns)].itertuples(index=False)]
