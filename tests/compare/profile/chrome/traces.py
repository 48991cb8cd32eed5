"""Chrome traces made by hand, as XLA's profiler lays them out.  Times are in µs."""

import gzip
import json
from pathlib import Path

PROCESS = 10
"""Of device 0; a host is process 1."""
LINES = ("Steps", "XLA Modules", "XLA Ops", "Async XLA Ops")


class Trace:
    """Events of one host.  named: whether threads of devices bear names."""

    def __init__(self, *, named=True, kind="TPU"):
        self.events, self.named, self.kind, self.about = [], named, kind, {"displayTimeUnit": "ns"}
        self.seen = set()

    def add(self, device, line, name, start, duration, **args):
        process = PROCESS + device
        if process not in self.seen:
            self.seen.add(process)
            self.meta("process_name", process, f"/device:{self.kind}:{device}")
            for thread, word in enumerate(LINES if self.named else ()):
                self.meta("thread_name", process, word, tid=thread)
        thread = LINES.index(line) if self.named else 7
        self.events.append(
            {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": start, "dur": duration, "args": args}
        )

    def meta(self, what, process, name, **more):
        self.events.append({"ph": "M", "name": what, "pid": process, "args": {"name": name}} | more)

    def op(self, device, name, start, duration, category, *, line="XLA Ops", **args):
        times = {"device_offset_ps": str(round(start * 1e6)), "device_duration_ps": str(round(duration * 1e6))}
        self.add(device, line, name, start, duration, hlo_category=category, **times, **args)

    def step(self, device, number, start, duration):
        self.add(device, "Steps", str(number), start, duration)

    def module(self, device, start, duration, name="jit_step(17)"):
        self.add(device, "XLA Modules", name, start, duration)

    def host(self, name, start, duration, **args):
        self.events.append({"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration, "args": args})

    def text(self):
        return json.dumps(self.about | {"traceEvents": self.events})

    def write(self, folder: Path, *, card=None, name="host.trace.json"):
        """A trace directory, or its file where there is no card."""
        folder.mkdir(parents=True, exist_ok=True)
        packed = name.endswith(".gz")
        (folder / name).write_bytes(gzip.compress(self.text().encode()) if packed else self.text().encode())
        if card is not None:
            (folder / "card.yaml").write_text(card)
        return folder


def all_reduce(number, elements, groups="{{0,1,2,3}}"):
    """A line of HLO: float32, so 4 bytes an element."""
    shape = f"f32[{elements}]{{0}}"
    return (
        f"%all-reduce.{number} = {shape} all-reduce({shape} %x), channel_id=1, replica_groups={groups}, to_apply=%add"
    )


def permute(number, elements, pairs="{{0,1}}"):
    shape = f"f32[{elements}]{{0}}"
    return f"%collective-permute.{number} = {shape} collective-permute({shape} %x), source_target_pairs={pairs}"


CARD = """
workload:
  model: {phase: inference, iteration: 1}
  data: {output_len: 3}
  hardware:
    xpu_spec: {type: TPU, model: tpu_v6e, total_count: 4}
metric_source: {traces: [json_tpu]}
"""
