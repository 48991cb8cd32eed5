"""Joules of a window where the device tells them: Zeus on NVIDIA and AMD GPUs."""

from typing import Any, Protocol


class Meter(Protocol):
    """Measures from `begin` to `end`; the devices are idle at either."""

    name: str

    def begin(self) -> None: ...

    def end(self) -> float | None:
        """Joules of all measured devices; `None` where it failed."""


class NoMeter:
    """Where no device tells its energy."""

    name = ""

    def begin(self) -> None:
        pass

    def end(self) -> float | None:
        return None


class ZeusMeter:
    """`zeus.monitor.ZeusMonitor`, over the GPUs with these indices."""

    name = "zeus"

    def __init__(self, indices: list[int]):
        from zeus.monitor import ZeusMonitor

        self._monitor: Any = ZeusMonitor(gpu_indices=indices, cpu_indices=[], sync_execution_with="jax")

    def begin(self) -> None:
        self._monitor.begin_window("calibrate", sync_execution=False)

    def end(self) -> float | None:
        measurement = self._monitor.end_window("calibrate", sync_execution=False)
        joules = [float(value) for value in measurement.gpu_energy.values()]
        # The counter of a GPU moves every 100 ms or so: a short window may see nothing.
        return sum(joules) if joules and min(joules) > 0 else None


def find_meter(platform: str, *, num_devices: int) -> Meter:
    """What tells the energy of this platform's devices, if it is installed."""
    if platform != "gpu":
        return NoMeter()
    try:
        return ZeusMeter(list(range(num_devices)))
    except ImportError:
        return NoMeter()
