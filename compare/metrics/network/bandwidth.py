"""The bandwidth of collectives, and the peak that their links allow.

Algorithm and bus bandwidth are those of NCCL-tests (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md).
"""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pandas as pd

from compare.metrics.network.routes import CORE, SLICE, Box, Torus, link_loads
from compare.metrics.network.sent_bytes import SentBytes
from compare.report.model.mesh import DeviceMesh
from compare.timeline.tracks.tracks import DeviceTracks


def bandwidths(tracks: DeviceTracks, sent: Mapping[str, SentBytes]) -> pd.DataFrame:
    """One row for each communication: collective, kind, axes, payload_bytes, duration_ns, wait_ns, and two bandwidths.

    algorithm_bytes_per_s: payload ÷ duration; bus_bytes_per_s: that times the kind's factor, NaN where the collective
    is not in `sent`.
    """
    comms = tracks.comms
    factors = {name: float(collective.bus_factor) for name, collective in sent.items()}
    duration = comms["duration_ns"].where(comms["duration_ns"] > 0)
    algorithm = comms["payload_bytes"] / duration * 1e9
    bus = algorithm * comms["collective"].astype(str).map(factors).astype(np.float64)
    columns = ["collective", "kind", "axes", "device", "payload_bytes", "duration_ns", "wait_ns"]
    return comms[columns].assign(algorithm_bytes_per_s=algorithm, bus_bytes_per_s=bus)


def peaks(sent: Mapping[str, SentBytes], mesh: DeviceMesh, link_bytes_per_s: float | None) -> dict[str, float]:
    """Collective -> the bus bandwidth that its links allow; unknown ones are left out.

    Permute or all-to-all: limited by the busiest link of the shortest routes.  Others: limited by the links of the
    least connected device of a group; groups that share these links share the bandwidth.
    """
    if link_bytes_per_s is None:
        return {}
    torus, known = Torus.of(mesh), dict[tuple[str, tuple[tuple[int, ...], ...]], Fraction | None]()
    result = {}
    for name, collective in sent.items():
        key = (collective.kind, collective.groups)
        if key not in known:
            known[key] = _links(collective, torus)
        links = known[key]
        if links is not None:
            result[name] = float(links) * link_bytes_per_s
    return result


def _links(sent: SentBytes, torus: Torus) -> Fraction | None:
    """The peak in units of one link's bandwidth."""
    if sent.kind in ("collective-permute", "all-to-all", "ragged-all-to-all"):
        return _by_routes(sent, torus)
    boxes = [Box.of(group, torus) for group in sent.groups if len(group) > 1]
    links_by_box = [_by_box(box, torus) for box in boxes if box is not None]
    if not boxes or len(links_by_box) < len(boxes) or None in links_by_box:
        return None
    return min(links for links in links_by_box if links is not None)


def _by_box(box: Box, torus: Torus) -> Fraction | None:
    """Links out of a corner of the box, each divided by the groups on the same line."""
    links = Fraction(0)
    for dim in box.dims:
        stride = box.stride(dim)
        if dim == SLICE or stride is None:
            return None
        if dim != CORE:
            links += Fraction(2 if box.closed(dim, torus) else 1, stride)
    # Cores of a chip share its links, unless they are in one group and share the incoming data.
    shared = 1 if CORE in box.dims else torus.sides[CORE]
    return links / shared or None


def _by_routes(sent: SentBytes, torus: Torus) -> Fraction | None:
    total: dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction] = {}
    for group in sent.groups:
        for (source, target), amount in link_loads(sent.kind, group, torus).items():
            chips = torus.places[source][:CORE], torus.places[target][:CORE]
            if chips[0][SLICE] != chips[1][SLICE]:
                return None
            if chips[0] != chips[1]:
                total[chips] = total.get(chips, Fraction(0)) + amount
    return sent.bus_factor / max(total.values()) if total else None
