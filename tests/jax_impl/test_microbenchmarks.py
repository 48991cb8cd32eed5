"""The meter of microbenchmarks, with a monitor in place of Zeus's: no GPU is here."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from jax_impl.microbenchmarks.meter import NoMeter, ZeusMeter, find_meter


@pytest.fixture
def joules(monkeypatch):
    """What the monitor answers, by GPU."""
    answer = {0: 12.5, 1: 7.5}

    class Monitor:
        def __init__(self, gpu_indices, cpu_indices, sync_execution_with):
            self.open = []
            assert (gpu_indices, cpu_indices, sync_execution_with) == ([0, 1], [], "jax")

        def begin_window(self, key, sync_execution):
            self.open.append(key)

        def end_window(self, key, sync_execution):
            self.open.remove(key)
            return SimpleNamespace(gpu_energy=dict(answer))

    monitor = ModuleType("zeus.monitor")
    monitor.ZeusMonitor = Monitor
    monkeypatch.setitem(sys.modules, "zeus", ModuleType("zeus"))
    monkeypatch.setitem(sys.modules, "zeus.monitor", monitor)
    return answer


def test_the_joules_of_a_window_are_those_of_all_gpus(joules):
    meter = find_meter("gpu", num_devices=2)
    assert isinstance(meter, ZeusMeter)
    meter.begin()
    assert meter.end() == 20.0


def test_a_counter_that_did_not_move_is_no_measurement(joules):
    joules[1] = 0.0
    meter = find_meter("gpu", num_devices=2)
    meter.begin()
    assert meter.end() is None


def test_without_zeus_or_on_another_platform_nothing_is_measured(monkeypatch):
    monkeypatch.setitem(sys.modules, "zeus.monitor", None)
    for platform in ("gpu", "cpu", "tpu"):
        meter = find_meter(platform, num_devices=1)
        assert isinstance(meter, NoMeter)
        meter.begin()
        assert meter.end() is None
