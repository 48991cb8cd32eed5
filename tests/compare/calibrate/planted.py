"""Windows whose constants are known, for tests: an accelerator that exists nowhere, with noise of two per cent."""

import numpy as np
import pandas as pd

from compare.calibrate.constants import TIME_UNITS, energy_terms, time_terms
from compare.calibrate.windows import make_table

SECONDS = {
    "dispatch_s": 30e-6,
    "cycle_factor": 0.0,
    "matrix_flops_per_s": 1e14,
    "vector_ops_per_s": 2e12,
    "memory_bytes_per_s": 1e12,
    "launch_s": 5e-6,
    "hop_s": 1e-6,
    "link_bytes_per_s": 4e10,
    "dcn_launch_s": 0.0,
    "dcn_bytes_per_s": 0.0,
}
"""In the units of TIME_UNITS."""
JOULES = {"matrix": 0.6, "vector": 1.7, "memory": 5.5, "ici": 2.2, "dcn": 0.0, "static": 100.0}
"""pJ/FLOP, pJ/op, pJ/bit, pJ/bit, pJ/bit, W."""
NOISE = 0.02
MB = 1e6


def coefficients() -> np.ndarray:
    """Seconds per unit of work."""
    return np.array(
        [1 / value if TIME_UNITS[name].endswith("/s") and value else value for name, value in SECONDS.items()]
    )


def windows(seed: int, *, noise: float = NOISE, calls: tuple[int, ...] = (20, 200)) -> pd.DataFrame:
    """Two windows each of products, copies, elementwise work, all-reduces over 2, 4 and 8 chips, and of nothing."""
    rows = [row for number in calls for row in _rows(number)]
    table = make_table(rows)
    random = np.random.default_rng(seed)
    seconds = time_terms(table).predict(coefficients()) * (1 + noise * random.standard_normal(len(table)))
    table["time_s"] = np.where(table["kind"] == "idle", 1.0, seconds)
    rates = np.array(list(JOULES.values())) * [1e-12, 1e-12, 8e-12, 8e-12, 8e-12, 1]
    table["energy_j"] = energy_terms(table).predict(rates) * (1 + noise * random.standard_normal(len(table)))
    return table


def _rows(calls):
    for n in (512, 1024, 2048, 4096):
        work = {"matrix_flops": calls * 2 * n**3, "memory_bytes": calls * 6 * n * n}
        yield {"name": f"matmul {n}", "kind": "matmul", "calls": calls, **work}
    for size in (1, 16, 64, 256):
        moved = calls * 2 * MB * size
        yield {"name": f"copy {size}", "kind": "copy", "calls": calls, "memory_bytes": moved}
        work = {"memory_bytes": moved, "vector_ops": moved * 32}
        yield {"name": f"elementwise {size}", "kind": "elementwise", "calls": calls, **work}
    for kilobytes in (16, 256, 4096, 65536):
        for chips in (2, 4, 8):
            sent = calls * kilobytes * 1e3 * (chips - 1) / chips
            yield {
                "name": f"all-reduce {kilobytes} over {chips}",
                "kind": "all-reduce",
                "chips": chips,
                "calls": calls,
                "collectives": calls,
                "hops": calls * 2 * (chips - 1),
                "link_bytes": sent,
                "ici_byte_hops": 2 * chips * sent,
            }
    yield {"name": "idle", "kind": "idle", "calls": calls}
