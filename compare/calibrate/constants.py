"""What is fitted to windows: the energy coefficients of a chip and the time constants of docs/model.md."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from compare.calibrate.fit import Estimate, Fit, Terms, fit_terms
from compare.calibrate.windows import ESTIMATED, WORK
from compare.energy.coefficients import COMPONENTS, JOULES
from compare.timeline.columns import WORK_COLUMNS
from meshes.devices.chip_file import SCHEMA
from meshes.devices.generations import GENERATIONS

ENERGY_UNITS: Mapping[str, str] = MappingProxyType({name: SCHEMA["energy"][name][0] for name in COMPONENTS})
TIME_UNITS: Mapping[str, str] = MappingProxyType(
    {
        name: SCHEMA["time"][name][0]
        for name in (
            "dispatch_s",
            "cycle_factor",
            "matrix_flops_per_s",
            "vector_ops_per_s",
            "memory_bytes_per_s",
            "launch_s",
            "hop_s",
            "link_bytes_per_s",
            "dcn_launch_s",
            "dcn_bytes_per_s",
        )
    }
)
"""Of one device.  `dispatch_s` is the host's, for each call of a program; the others are those of docs/model.md."""
MOST_TIMES = 10.0
"""A constant that is more than so many times off from a chip's is a wrong unit, or another chip."""
_CORE = ("cycle_factor", "matrix_flops_per_s", "vector_ops_per_s")
_MEMORY = ("memory_bytes_per_s",)


def energy_terms(windows: pd.DataFrame) -> Terms:
    """Joules: every work column × its coefficient, and static power × seconds × chips."""
    columns = [*(windows[name] for name in WORK_COLUMNS), windows["time_s"] * windows["chips"]]
    nothing = np.zeros(len(COMPONENTS), np.bool_)
    return Terms(COMPONENTS, np.stack([column.to_numpy(np.float64) for column in columns], axis=1), nothing, nothing)


def time_terms(windows: pd.DataFrame) -> Terms:
    """Seconds: calls and steps of the network add up; of arithmetic and memory the longer counts.

    Where the compiler estimates cycles these stand for the arithmetic, as in the schedule model.
    """
    devices = windows["devices"].to_numpy(np.float64)
    estimated = windows[ESTIMATED].to_numpy(np.float64)
    counted = np.where(estimated > 0, 0.0, 1.0) / devices
    column = {name: windows[name].to_numpy(np.float64) for name in windows.columns if name not in ("name", "kind")}
    amounts = {
        "dispatch_s": column["calls"],
        "cycle_factor": estimated,
        "matrix_flops_per_s": column["matrix_flops"] * counted,
        "vector_ops_per_s": column["vector_ops"] * counted,
        "memory_bytes_per_s": column["memory_bytes"] / devices,
        "launch_s": column["collectives"],
        "hop_s": column["hops"],
        "link_bytes_per_s": column["link_bytes"],
        "dcn_launch_s": column["dcn_transfers"],
        "dcn_bytes_per_s": column["dcn_bytes"] / devices,
    }
    names = tuple(amounts)
    return Terms(names, np.stack([*amounts.values()], axis=1), np.isin(names, _CORE), np.isin(names, _MEMORY))


def list_unusual(estimates: Sequence[Estimate], generation: str) -> list[str]:
    """A line for each constant that is more than MOST_TIMES off from what is known of a generation's chip.

    Rates against the data sheet, energy against the range of its coefficient.  Nothing for no TPU of the table.
    """
    if generation not in GENERATIONS:
        return []
    row = GENERATIONS[generation]
    sheet: dict[str, float | None] = {
        "matrix_flops_per_s": row.bf16_flops / row.devices,
        "memory_bytes_per_s": row.hbm_bytes_per_s / row.devices,
        "link_bytes_per_s": row.ici_link_bytes_per_s,
        "cycle_factor": 1.0,
    }
    known = {name: ("data sheet's", value, value) for name, value in sheet.items() if value}
    for name, unit in ENERGY_UNITS.items():
        factor = JOULES[row.energy[name].unit] / JOULES[unit]
        known[name] = ("table's", row.energy[name].low * factor, row.energy[name].high * factor)
    units = {**ENERGY_UNITS, **TIME_UNITS}
    lines = []
    for each in estimates:
        whose, low, high = known.get(each.name, ("", 0.0, math.inf))
        if each.value and not low / MOST_TIMES <= each.value <= high * MOST_TIMES:
            end = high if each.value > high else low
            lines.append(
                f"{each.name} is {each.value:.3g} {units[each.name]}, {each.value / end:.2g} times the {whose} "
                f"{end:.3g} of {generation}: are the windows in s, J, FLOP, op and byte, and of a {generation}?"
            )
    return lines


def fit_energy(windows: pd.DataFrame) -> Fit:
    """Coefficients in joules per unit of work, from the windows whose energy was measured."""
    measured = windows[windows["energy_j"] > 0]
    return fit_terms(
        energy_terms(measured), measured["energy_j"].to_numpy(np.float64), groups=measured["name"].to_list()
    )


def fit_time(windows: pd.DataFrame) -> Fit:
    """Coefficients in seconds per unit of work, from the windows that have any."""
    worked = windows[(windows[list(WORK)] > 0).any(axis=1)]
    return fit_terms(time_terms(worked), worked["time_s"].to_numpy(np.float64), groups=worked["name"].to_list())


def convert_energy(estimate: Estimate) -> Estimate:
    """Joules per unit of work -> the unit of the table."""
    factor = 1 / JOULES[ENERGY_UNITS[estimate.name]]
    low, high = estimate.low * factor, estimate.high * factor
    return Estimate(name=estimate.name, value=estimate.value * factor, low=low, high=high)


def convert_time(estimate: Estimate) -> Estimate | None:
    """Seconds per unit of work -> a rate where the constant is one; `None` for a rate without bound."""
    if not TIME_UNITS[estimate.name].endswith("/s"):
        return estimate
    if estimate.value <= 0:
        return None
    high = 1 / estimate.low if estimate.low > 0 else float("inf")
    return Estimate(name=estimate.name, value=1 / estimate.value, low=least_rate(estimate), high=high)


def least_rate(estimate: Estimate) -> float:
    """The slowest that a rate without bound can be, from the interval of its inverse; infinite where that is 0."""
    return 1 / estimate.high if estimate.high > 0 else float("inf")
