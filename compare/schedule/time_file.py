"""The schedule model's constants from a user's TOML, as `compare.calibrate` writes it: table `[time]`.

```toml
generation = "v5e"              # left out: of any chip
calibrated-on = "TPU v5 lite (8 devices), 2026-06-01"
[time.link_bytes_per_s]         # any of TIME_UNITS; the others are the generation's
value = 3.9e10
low = 3.8e10                    # left out, as high, source and standing: the model takes the value alone
high = 4.0e10
unit = "byte/s"
```
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from compare.schedule.hardware import Hardware
from compare.timeline.errors import TimingError
from meshes.devices.generations import Generation
from meshes.process.documents import read_toml
from meshes.process.errors import MeshError
from meshes.process.one_line import quote

Table = Mapping[str, object]

TIME_UNITS: Mapping[str, str] = MappingProxyType(
    {
        "dispatch_s": "s", "cycle_factor": "×", "matrix_flops_per_s": "FLOP/s", "vector_ops_per_s": "op/s",
        "memory_bytes_per_s": "byte/s", "launch_s": "s", "hop_s": "s", "link_bytes_per_s": "byte/s",
        "dcn_launch_s": "s", "dcn_bytes_per_s": "byte/s",
    }
)  # fmt: skip
"""Of one device.  The host's dispatch and the rate of vector operations are no part of the schedule model."""
_OF_NO_STEP = {"dispatch_s", "matrix_flops_per_s", "vector_ops_per_s"}
"""Constants by which no step is calibrated: products last by the compiler's estimates, and only kernels whose author
states their FLOPs by the rate of products."""
_ROW_KEYS = ("value", "low", "high", "unit", "source", "standing")
_LARGEST = 1e30
_FIELDS = {
    "matrix_flops_per_s": ("flops_per_ns", 1e-9), "memory_bytes_per_s": ("hbm_bytes_per_ns", 1e-9),
    "link_bytes_per_s": ("link_bytes_per_ns", 1e-9), "launch_s": ("launch_ns", 1e9), "hop_s": ("hop_ns", 1e9),
    "dcn_launch_s": ("dcn_launch_ns", 1e9), "dcn_bytes_per_s": ("dcn_bytes_per_ns", 1e-9),
}  # fmt: skip
"""Constant -> field of Hardware, and its factor.  cycle_factor multiplies the clock's."""


@dataclass(frozen=True, slots=True)
class CalibratedTimes:
    """Rates of a device, and where they were measured."""

    hardware: Hardware
    calibrated_on: str
    """Empty: the file does not say, or none of its constants is of the operations of a step."""
    is_of_steps: bool = True
    """Whether any is."""

    @property
    def words(self) -> str:
        """Behind the name of a slice: `calibrated on our pod, June`."""
        if not self.is_of_steps:
            return "with its own rate of kernels"
        return f"calibrated on {self.calibrated_on}" if self.calibrated_on else "calibrated"


def read_times(path: Path, row: Generation) -> CalibratedTimes | None:
    """A file's constants for chips of this generation; `None` where it has no table `[time]`.

    `OSError` where it can't be opened, `TimingError`, one line, where it holds anything else.
    """
    try:
        return parse_times(read_toml(path), row)
    except MeshError as error:
        raise TimingError(f"{path} is {error}") from None
    except TimingError as error:
        raise TimingError(f"{path}: {error}") from None


def parse_times(table: Table, row: Generation) -> CalibratedTimes | None:
    """The same of a table.  `TimingError`, which names the key."""
    if "time" not in table:
        return None
    meant = table.get("generation", row.name)
    if meant != row.name:
        raise TimingError(f"generation: these constants are of {quote(meant)}, the chips are {row.name}")
    rows = table["time"]
    if not isinstance(rows, dict):
        raise TimingError(f"time: a table of {', '.join(TIME_UNITS)}, not {quote(rows)}")
    values = {name: _read_row(name, entry) for name, entry in rows.items()}
    hardware = Hardware.of(row)
    changes = {_FIELDS[name][0]: value * _FIELDS[name][1] for name, value in values.items() if name in _FIELDS}
    if "cycle_factor" in values:
        changes["cycle_ns"] = hardware.cycle_ns / hardware.cycle_factor * values["cycle_factor"]
        changes["cycle_factor"] = values["cycle_factor"]
    is_of_steps = bool(set(values) - _OF_NO_STEP)
    on = str(table.get("calibrated-on", "")) if is_of_steps else ""
    return CalibratedTimes(replace(hardware, **changes), on, is_of_steps)


def _read_row(name: str, row: object) -> float:
    place = f"time.{name}"
    if name not in TIME_UNITS:
        raise TimingError(f"{place}: unknown key; known are {', '.join(TIME_UNITS)}")
    if not isinstance(row, dict):
        raise TimingError(f"{place}: a table with value and unit, not {quote(row)}")
    for key in row:
        if key not in _ROW_KEYS:
            raise TimingError(f"{place}.{key}: unknown key; known are {', '.join(_ROW_KEYS)}")
    unit = TIME_UNITS[name]
    if row.get("unit") != unit:
        said = quote(row["unit"]) + " is not its unit" if "unit" in row else "missing"
        raise TimingError(f"{place}.unit: {said}; it is {unit}")
    value = row.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TimingError(f"{place}.value: {'missing' if value is None else quote(value)}; a number of {unit}")
    # A latency can be nothing, a rate or a factor of time cannot.
    least = 0.0 if unit == "s" else 1e-30
    if not least <= value <= _LARGEST:
        raise TimingError(
            f"{place}.value: {value:g} is out of range; a number of {unit}, {'0 or more' if unit == 's' else 'above 0'}"
        )
    return float(value)
