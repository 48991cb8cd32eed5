"""What a profile of CPU devices holds: its events by `jax.profiler.ProfileData`, its program by our reader."""

import re
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.proto import program
from compare.hlo.text.module import read
from compare.profile.join.carried_programs import read_protos
from compare.profile.xplane.reader import read_file

COLLECTIVE = re.compile(r"(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)[\w.\-]*")


class Step(NamedTuple):
    name: str
    number: int
    start_ns: float
    end_ns: float


@dataclass(frozen=True)
class ProfileRecord:
    steps: list[Step]
    """The marked ones, in order."""
    executions: list[Counter[tuple[str, int | None]]]
    """For each step, how often each kind of collective began on each device (`None` where no device is told)."""
    outside: int
    """Collectives that began in no step."""
    python_frames: int

    @classmethod
    def read(cls, path: Path) -> Self:
        profiler = pytest.importorskip("jax.profiler", reason="its ProfileData is the reader here")
        events = [
            event
            for plane in profiler.ProfileData.from_file(str(path)).planes
            for line in plane.lines
            for event in line.events
        ]
        with_stats = [(event, dict(event.stats)) for event in events]
        steps = sorted(
            (
                Step(event.name, stats["step_num"], event.start_ns, event.end_ns)
                for event, stats in with_stats
                if "step_num" in stats
            ),
            key=lambda step: step.start_ns,
        )
        counted: list[Counter[tuple[str, int | None]]] = [Counter() for _ in steps]
        outside = 0
        for event, stats in with_stats:
            kind = COLLECTIVE.fullmatch(str(stats.get("hlo_op", "")))
            if kind and event.name == stats["hlo_op"]:
                at = [number for number, step in enumerate(steps) if step.start_ns <= event.start_ns < step.end_ns]
                outside += not at
                for number in at:
                    counted[number][kind[1], stats.get("device_ordinal")] += 1
        frames = sum(event.name.startswith("$") for event in events)
        return cls(steps=steps, executions=counted, outside=outside, python_frames=frames)


TINY_STEP = {"all-reduce": 22, "collective-permute": 5, "all-gather": 2}
"""What a device runs in a step of the tiny preset on dp2pp2tp2, by hand.

2 layers on a stage, 4 + 2 - 1 ticks: 10 all-reduces behind attention and 10 behind the MLP, one of the embedding and
one that collects; a shift in each tick; the best scores and their ids.
"""


def check_about(about: dict[str, Any], *, arm: str, phase: str, runtime: str) -> None:
    """What about.json must hold beside what `lower` writes."""
    executed = about["executed"]
    assert executed.pop("device_kind").lower() == "cpu"
    assert executed == {
        "platform": "cpu",
        "num_devices": 8,
        "warmup_steps": 2,
        "steps": 5,
        "runtime": runtime,
    }
    assert (about["arm"], about["phase"]) == (arm, phase)
    assert {"import", "compile", "load", "warm up", "record", "write"} == set(about["seconds"])
    keys = {
        "arm",
        "phase",
        "versions",
        "partitioner",
        "loop",
        "attention",
        "style",
        "compile_options",
        "parameters",
        "outputs",
        "executed",
        "seconds",
    }
    assert set(about) == keys | ({"cache"} if phase == "decode" else set())


LAWS = {
    ("embed", "all-reduce@tp"): 1,
    ("layer.attention.out", "all-reduce@tp"): 10,
    ("layer.mlp.down", "all-reduce@tp"): 10,
    ("pipeline.shift", "collective-permute@pp"): 5,
    ("sample", "all-gather@tp"): 2,
    ("pipeline.collect", "all-reduce@pp"): 1,
}
"""The same by scope and axis."""


@dataclass(frozen=True)
class CarriedProgram:
    """The one program that a profile carries."""

    name: str
    text: str

    @classmethod
    def read(cls, path: Path) -> Self:
        ((name, data),) = read_protos([read_file(path)]).items()
        return cls(name, program.write_hlo_text(data))

    @property
    def rows(self) -> dict[tuple[str, str], int]:
        """Executions in a step by scope and kind@axes."""
        required = [
            SimpleNamespace(scope=f"pipeline.{word}", kind="collective-permute", axes="pp")
            for word in ("shift", "collect")
        ]
        counts: Counter[tuple[str, str]] = Counter()
        for row in collectives(read(self.text), {"dp": 2, "pp": 2, "tp": 2}, contract=required):
            assert row.executions is not None
            counts[row.scope, f"{row.kind}@{row.axes}"] += row.executions
        return dict(counts)

    @property
    def parameters(self) -> list[str]:
        """As one device holds them: `bf16[2,1,128]`."""
        matches = re.findall(r"= (\w+\[[\d,]*\])\S* parameter\((\d+)\)", self.text[self.text.index("\nENTRY") :])
        return [shape for shape, _ in sorted(matches, key=lambda pair: int(pair[1]))]

    @property
    def overwritten(self) -> dict[int, int]:
        """The parameter that each output overwrites."""
        header = self.text[: self.text.index("\n")]
        return {int(output): int(at) for output, at in re.findall(r"\{(\d+)\}: \((\d+), \{\}", header)}


def declared_shapes(about: dict[str, Any], *, axes: dict[str, int]) -> list[str]:
    """What about.json says that one device holds of each parameter."""

    def local(row: dict[str, Any]) -> str:
        ways = [prod(axes[axis] for axis in split.split(",")) if split else 1 for split in row["axes"]]
        return ",".join(str(n // parts) for n, parts in zip(row["shape"], ways, strict=True))

    return [f"{row['dtype']}[{local(row)}]" for row in about["parameters"]]


def cache_aliases(about: dict[str, Any]) -> dict[int, int]:
    """Output and parameter of the two caches."""
    at = {row["name"]: row["index"] for row in about["parameters"] if row["role"] == "cache"}
    return {row["index"]: at[row["name"]] for row in about["outputs"] if row["name"] in at}
