"""What tells the energy of a window: Zeus on NVIDIA and AMD GPUs; on TPUs the profiler's power events, in a profile."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

POWER_EVENTS = {"tpu_power_trace_level": 2, "tpu_e2e_enable_fw_power_level_event": True}
"""Of openxla/xprof, `docs/advanced_profiler_options.md`: the SPI sampler, and the firmware's meters."""


class Meter(Protocol):
    """Measures from `begin` to `end`; the devices are idle at either."""

    name: str

    def begin(self) -> None: ...

    def end(self) -> dict[str, Any]:
        """`energy_j`, of all measured devices; or `profile`, the file that tells it."""


class NoMeter:
    """Where no device tells its energy."""

    name = ""

    def begin(self) -> None:
        pass

    def end(self) -> dict[str, Any]:
        return {}


class ZeusMeter:
    """`zeus.monitor.ZeusMonitor`, over the GPUs with these indices."""

    name = "zeus"

    def __init__(self, indices: list[int]):
        from zeus.monitor import ZeusMonitor

        self._monitor: Any = ZeusMonitor(gpu_indices=indices, cpu_indices=[], sync_execution_with="jax")

    def begin(self) -> None:
        self._monitor.begin_window("calibrate", sync_execution=False)

    def end(self) -> dict[str, Any]:
        measurement = self._monitor.end_window("calibrate", sync_execution=False)
        joules = [float(value) for value in measurement.gpu_energy.values()]
        # The counter of a GPU moves every 100 ms or so: a short window may see nothing.
        return {"energy_j": sum(joules)} if joules and min(joules) > 0 else {}


class ProfilerMeter:
    """Records a profile with power events of each window; `compare.calibrate` reads it."""

    name = "xprof"

    def __init__(self, out: Path):
        self._out, self._count = out, 0

    def begin(self) -> None:
        import jax

        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        options.advanced_configuration = dict(POWER_EVENTS)
        self._folder = TemporaryDirectory(dir=self._out)
        jax.profiler.start_trace(self._folder.name, profiler_options=options)

    def end(self) -> dict[str, Any]:
        import jax

        jax.profiler.stop_trace()
        with self._folder as folder:
            recorded = list(Path(folder).rglob("*.xplane.pb"))
            if len(recorded) != 1:
                return {}
            self._count += 1
            name = f"window-{self._count}.xplane.pb"
            recorded[0].replace(self._out / name)
            return {"profile": name}


def find_meter(platform: str, *, num_devices: int, out: Path) -> Meter:
    """What tells the energy of this platform's devices, if it is installed.  out: where profiles are written."""
    if platform == "tpu":
        return ProfilerMeter(out)
    if platform != "gpu":
        return NoMeter()
    try:
        return ZeusMeter(list(range(num_devices)))
    except ImportError:
        return NoMeter()
