"""Samples of meters from CSV files, one for each metric and rank, as CharLLM-PPT's patched Zeus writes them.

`<metric>_<rank>.csv` without a header, each line `time,value`: seconds since 1970, and −1 where the meter could not be
read (sitar-lab/CharLLM-PPT, `zeus/zeus/monitor/power.py`).  `system_<metric>_rank_<rank>_id_<id>.csv` and
`system_memory_<used|free>_<rank>.csv` are of a host, by its first rank.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from compare.timeline.errors import TimingError
from compare.timeline.series import (
    CHIP,
    CLOCK,
    COUNT,
    HOST,
    MEMORY,
    POWER,
    RATE,
    TEMPERATURE,
    USE,
    Series,
)

METRICS = {
    "gpu_power": (POWER, CHIP, "W"),
    "power": (POWER, CHIP, "W"),
    "mem_power": (POWER, MEMORY, "W"),
    "gpu_util": (USE, CHIP, "%"),
    "mem_util": (USE, MEMORY, "%"),
    "gpu_thermal": (TEMPERATURE, CHIP, "°C"),
    "mem_thermal": (TEMPERATURE, MEMORY, "°C"),
    "sm_clock": (CLOCK, CHIP, "MHz"),
    "gpu_clock": (CLOCK, CHIP, "MHz"),
    "mem_clock": (CLOCK, MEMORY, "MHz"),
    "pcie_rx_bytes": (COUNT, CHIP, "B"),
    "pcie_tx_bytes": (COUNT, CHIP, "B"),
    "pcie_rx_throughput": (RATE, CHIP, "kB/s"),
    "pcie_tx_throughput": (RATE, CHIP, "kB/s"),
    "nvlink_rx_throughput": (COUNT, CHIP, "KiB"),
    "nvlink_tx_throughput": (COUNT, CHIP, "KiB"),
    "system_cpu_usage": (USE, HOST, "%"),
    "system_cpu_idle": (USE, HOST, "%"),
    "system_cpu_iowait": (USE, HOST, "%"),
    "system_cpu_temp": (TEMPERATURE, HOST, "°C"),
    "system_memory_used": (USE, HOST, "B"),
    "system_memory_free": (USE, HOST, "B"),
    "system_ib_rx_bytes": (COUNT, HOST, "B"),
    "system_ib_tx_bytes": (COUNT, HOST, "B"),
}
"""Metric -> quantity, component, unit.  `nvlink_*_throughput` counts, as CharLLM-PPT's figures read it: its unit is
what NVML's field documents."""

_WORDS = "|".join(sorted(METRICS, key=len, reverse=True))
_NAME = re.compile(rf"(?:.*?_)??(?P<metric>{_WORDS})(?:_rank)?_(?P<rank>\d{{1,9}})(?:_id_(?P<id>.+))?\.csv")
_FAILED = -1
MOST_BYTES = 1 << 26
PER_HOST = 8
"""Ranks of a host where nothing tells it, as CharLLM-PPT's figures assume."""


@dataclass(frozen=True, slots=True)
class CsvSamples:
    series: tuple[Series, ...]
    """Times in ns since `zero_unix_ns`."""
    zero_unix_ns: int
    notes: tuple[str, ...]


def is_metric(path: Path) -> bool:
    """Whether a file's name is that of a metric and a rank."""
    return _NAME.fullmatch(path.name) is not None


def read_metrics(paths: Sequence[Path], *, per_host: int | None = None) -> CsvSamples:
    """The meters of some CSV files; files without a sample become notes.

    per_host: ranks of a host; where not given, each rank that has a file of its system begins one, else every 8th.
    `OSError` where a file can't be opened, `TimingError` where no file has a sample.
    """
    series: list[Series] = []
    notes: list[str] = []
    second = None
    for path in sorted(paths, key=lambda path: [int(word) if word.isdigit() else word for word in _parts(path)]):
        match = _NAME.fullmatch(path.name)
        assert match is not None
        frame, failed, said = _read(path)
        notes += [f"{path.name}: {words}" for words in said]
        if not len(frame):
            continue
        times = frame["time"].to_numpy(np.float64)
        second = int(times.min()) if second is None else min(second, int(times.min()))
        quantity, component, unit = METRICS[match["metric"]]
        series.append(
            Series(
                device=int(match["rank"]),
                name=match["metric"] + (f" {match['id']}" if match["id"] else ""),
                quantity=quantity,
                component=component,
                unit=unit,
                times_ns=times,
                values=frame["value"].to_numpy(np.float64),
                failed=failed,
            )
        )
    if second is None:
        raise TimingError(f"{paths[0].parent}: no samples in {len(paths)} CSV files; {'; '.join(notes[:3])}")
    ranks = sorted({part.device for part in series if part.component != HOST})
    first_ranks, assumed = _first_ranks(series, ranks, per_host)
    notes += assumed
    return CsvSamples(
        tuple(
            replace(
                part,
                times_ns=(part.times_ns - second) * 1e9,
                host=int(np.searchsorted(first_ranks, part.device, side="right")) - 1,
            )
            for part in series
        ),
        second * 10**9,
        tuple(notes),
    )


def _parts(path: Path) -> list[str]:
    return re.split(r"(\d+)", path.name)


def _read(path: Path) -> tuple[pd.DataFrame, int, list[str]]:
    """(time and value of each sample in order of time, samples that failed, notes)."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise TimingError(f"{path}: larger than {MOST_BYTES:,} bytes, which is the most that is read of a CSV file")
    frame = pd.DataFrame(columns=["time", "value"], dtype=np.float64)
    if not data.strip():
        return frame, 0, ["it is empty"]
    try:
        text = pd.read_csv(
            BytesIO(data),
            header=None,
            names=["time", "value"],
            usecols=[0, 1],
            dtype=str,
            encoding_errors="replace",
            on_bad_lines="skip",
            skip_blank_lines=True,
            index_col=False,
        )
    except (ValueError, pd.errors.ParserError):
        return frame, 0, ["no lines of time,value"]
    frame = text.apply(pd.to_numeric, errors="coerce")
    known = np.isfinite(frame).all(axis=1)
    header = int(len(frame) > 1 and not known.iloc[0] and text.iloc[0].astype(str).str.contains("[a-z]").any())
    lost = int((~known).sum()) - header
    failed = known & (frame["value"] == _FAILED)
    frame = frame[known & ~failed].reset_index(drop=True)
    return (
        frame.sort_values("time", kind="stable", ignore_index=True),
        int(failed.sum()),
        list(_said(frame, lost, failed)),
    )


def _said(frame: pd.DataFrame, lost: int, failed: "pd.Series[bool]") -> Iterator[str]:
    if lost:
        yield f"{lost} of {len(failed)} lines are not time,value: left out"
    if failed.any():
        yield f"{int(failed.sum())} of {len(failed)} samples failed (−1): left out, their neighbours are joined"
    if not frame["time"].is_monotonic_increasing:
        yield "its samples are out of order: sorted by time"
    if not len(frame):
        yield "no sample is left"


def _first_ranks(series: Sequence[Series], ranks: Sequence[int], per_host: int | None) -> tuple[list[int], list[str]]:
    """(the first rank of each host, a note where it is assumed)."""
    of_hosts = sorted({part.device for part in series if part.component == HOST})
    if per_host is None and of_hosts:
        return [min(0, of_hosts[0]), *of_hosts[1:]] if len(of_hosts) > 1 else [0], []
    most = max([*ranks, *of_hosts])
    first = list(range(0, most + 1, per_host or PER_HOST))
    assumed = per_host is None and len(first) > 1
    return first, [f"hosts are taken to have {PER_HOST} ranks each; --per-host says otherwise"] if assumed else []
