"""The meter of microbenchmarks, with a monitor in place of Zeus's: no GPU is here."""

import sys
from pathlib import Path
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


def test_the_joules_of_a_window_are_those_of_all_gpus(joules, tmp_path):
    meter = find_meter("gpu", num_devices=2, out=tmp_path)
    assert isinstance(meter, ZeusMeter)
    meter.begin()
    assert meter.end() == {"energy_j": 20.0}


def test_a_counter_that_did_not_move_is_no_measurement(joules, tmp_path):
    joules[1] = 0.0
    meter = find_meter("gpu", num_devices=2, out=tmp_path)
    meter.begin()
    assert meter.end() == {}


def test_without_zeus_or_on_another_platform_nothing_is_measured(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "zeus.monitor", None)
    for platform in ("gpu", "cpu"):
        meter = find_meter(platform, num_devices=1, out=tmp_path)
        assert isinstance(meter, NoMeter)
        meter.begin()
        assert meter.end() == {}


def test_on_a_tpu_each_window_has_a_profile_with_its_power_events(monkeypatch, tmp_path):
    """The profiler of JAX in its place: it gets the options that turn power events on."""
    jax = ModuleType("jax")
    options = SimpleNamespace()

    def start_trace(folder, profiler_options):
        (tmp_path / "seen").write_text(str(profiler_options.advanced_configuration["tpu_power_trace_level"]))
        options.folder = folder

    jax.profiler = SimpleNamespace(
        ProfileOptions=lambda: SimpleNamespace(),
        start_trace=start_trace,
        stop_trace=lambda: (Path(options.folder) / "host.xplane.pb").write_bytes(b"profile"),
    )
    monkeypatch.setitem(sys.modules, "jax", jax)
    meter = find_meter("tpu", num_devices=1, out=tmp_path)
    meter.begin()
    assert meter.end() == {"profile": "window-1.xplane.pb"}
    assert (tmp_path / "window-1.xplane.pb").read_bytes() == b"profile"
    assert (tmp_path / "seen").read_text() == "2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seen", "window-1.xplane.pb"]
