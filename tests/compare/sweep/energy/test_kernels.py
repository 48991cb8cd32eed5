"""Classes of kernels: by hand, and that each operation of a real program is in exactly one."""

import json

import pandas as pd
import pytest

from compare.report.model.report import Report
from compare.sweep.energy.kernels import classify_operations, time_by_class
from compare.sweep.energy.measure import _COLUMNS, measure_programs
from compare.sweep.summary import CLASSES
from tests.compare.timeline.build import comm, compute, container, steps, timeline
from tests.places import ROOT

RUN = ROOT / "docs/example-run"


def example():
    """The report of the documentation's run, and the events of its programs."""
    report = Report.from_json(json.loads((RUN / "report.json").read_text()))
    return report, pd.read_parquet(RUN / "tables/events.parquet", columns=list(_COLUMNS))


def with_work(events, *, stands_for=1, **work):
    """Events with the work of those named: name -> (matrix FLOPs, memory bytes)."""
    names = events["name"].astype(str)
    flops, bytes_ = ([work.get(name, (0, 0))[at] for name in names] for at in (0, 1))
    return events.assign(matrix_flops=flops, memory_bytes=bytes_, vector_ops=0.0, stands_for=stands_for)


def test_each_event_is_in_the_class_of_its_operation_and_idle_is_the_rest():
    """100 ns: a matmul of 30, a norm of 10, a copy of 5, nothing of 2, a gather exposed for 8 of its 20."""
    made = timeline(
        [
            compute(0, 30, name="dot"),
            compute(30, 40, name="scale") | {"scope": "norm"},
            compute(40, 45, name="copy"),
            compute(45, 47, name="call"),
            container(0, 90),
            comm(39, 55, name="g", kind="all-gather"),
            comm(60, 70, name="p", kind="collective-permute"),
            comm(70, 75, name="b", kind="collective-broadcast"),
        ],
        steps(0, 100),
    )
    events = with_work(made.events, dot=(1e6, 1e3), scale=(0, 1e3), copy=(0, 1e3))
    times = time_by_class(events, step_ns=100, device_steps=1)
    assert {name: ns for name, ns in times.items() if ns} == {
        "matmul": 30,
        "norm": 10,
        "memory and elementwise": 5,
        "other compute": 2,
        "all-gather": 8,
        "send and receive": 10,
        "other communication": 5,
        "idle": 30,
    }
    assert list(times) == list(CLASSES)


def test_an_operation_that_multiplies_once_is_a_matmul_in_every_execution():
    made = timeline([compute(0, 10, name="f"), compute(10, 30, name="f")], steps(0, 30))
    events = with_work(made.events).assign(matrix_flops=[0.0, 5.0])
    assert classify_operations(events).to_dict() == {"f": "matmul"}
    assert time_by_class(events, step_ns=30, device_steps=1)["matmul"] == 30


def test_devices_that_stand_for_others_weigh_as_many():
    made = timeline(
        [compute(0, 10, device=0, name="f"), compute(0, 40, device=1, name="f")], steps(0, 40, devices=(0, 1))
    )
    events = with_work(made.events, f=(1, 0), stands_for=[3, 1])
    assert time_by_class(events, step_ns=40, device_steps=4)["matmul"] == (3 * 10 + 40) / 4


def test_every_operation_of_a_compiled_program_is_in_one_class_and_the_classes_are_the_step():
    report, events = example()
    for (phase, arm, cell), energy in measure_programs(report, events):
        program = next(p for p in report.phases[phase].arms[arm] if p.cell == cell)
        assert sum(energy["kernels_ns"].values()) == pytest.approx(program.timing.per_step.step_ns, rel=1e-9)
        compute_ns = sum(list(energy["kernels_ns"].values())[:4])
        assert compute_ns == pytest.approx(program.timing.per_step.compute_ns, rel=1e-9)
        mine = events[events["arm"].eq(arm) & events["phase"].eq(phase) & events["cell"].eq(cell)]
        classes = classify_operations(mine)
        assert classes.index.is_unique
        assert set(classes) <= set(CLASSES)
