"""Matrix work that devices repeat: what all of them compute together, against what the program asks for, by line."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from math import isclose, prod

from compare.hlo.counts.evaluator import Evaluator
from compare.hlo.counts.execution_counts import lines_leading_to
from compare.hlo.dataflow.dataflow import ONE_CALL, CallContext, body_of, branches_of
from compare.hlo.devices.groups import DeviceNumbering
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Computation, Instruction
from compare.hlo.text.metadata import SourceMetadata, SourceNames
from compare.hlo.text.module import Module
from compare.schedule.work.arithmetic import multiply_adds

_PRODUCT = re.compile(r"[\]})] (?:dot|convolution)\(")
LEAST_RATIO = 1.05
"""Below it nothing is told: a product of padded parts is no repeated one."""
LEAST_SHARE = 0.01
"""Of the devices' work, of a line that is told."""
MOST_LINES = 8


class _UnknownCountError(Exception):
    """A loop around a product runs as often as its data says."""


def repeated_work(before: Module, after: Module, *, axes: Mapping[str, int], names: SourceNames | None = None) -> str:
    """One sentence, or empty where each product is computed once, or where the text does not say how often.

    before: the program before the partitioner, on one device; after: compiled.
    """
    devices = after.num_partitions
    try:
        asked = count_by_line(before, names)
        done = Counter({line: flops * devices for line, flops in count_by_line(after, names).items()})
    except (_UnknownCountError, HloError):
        return ""
    if not asked.total() or done.total() < LEAST_RATIO * asked.total():
        return ""
    lines = [
        f"{_times(flops / asked[line], axes)} at {line}"
        for line, flops in done.most_common()
        if line and asked[line] and flops >= max(LEAST_RATIO * asked[line], LEAST_SHARE * done.total())
    ]
    more = f", and at {len(lines) - MOST_LINES} lines more" * (len(lines) > MOST_LINES)
    whole = f"the {devices} devices together do {done.total() / asked.total():.2f} × the program's matrix FLOPs"
    return ": ".join(filter(None, (whole, "; ".join(lines[:MOST_LINES]) + more)))


def _times(ratio: float, axes: Mapping[str, int]) -> str:
    """How often, and over which axes, where only one choice of them makes as many copies."""
    split = [axis for axis, size in axes.items() if size > 1]
    fits = [
        chosen
        for count in range(1, len(split) + 1)
        for chosen in combinations(split, count)
        if isclose(prod(axes[axis] for axis in chosen), ratio, rel_tol=0.01)
    ]
    return f"{ratio:.2f} ×" + (f" (not split over {' and '.join(fits[0])})" if len(fits) == 1 else "")


def count_by_line(module: Module, names: SourceNames | None = None) -> Counter[str]:
    """Source line -> FLOPs of its dots and convolutions in a step of one device; `` for those without a line."""
    values = Evaluator(DeviceNumbering(module.replica_count or 1, module.num_partitions or 1, 1))
    metadata = SourceMetadata(module, names)
    products = {module.line_at(match.start()) for match in _PRODUCT.finditer(module.text)}
    wanted = lines_leading_to(module, products)
    found: Counter[str] = Counter()
    for item, times in _visit(CallContext(module.entry), 1, wanted, values):
        found[metadata.source_line(item) or ""] += 2 * multiply_adds(item) * times
    return found


def _visit(
    frame: CallContext, times: int, wanted: Mapping[Computation, list[int]], values: Evaluator
) -> Iterator[tuple[Instruction, int]]:
    for at in wanted.get(frame.computation, ()):
        item = frame.computation.at(at)
        if item.opcode in ("dot", "convolution"):
            yield item, times
        elif item.opcode == "while":
            trips = values.trips.count(frame, item)
            if trips is None:
                raise _UnknownCountError
            yield from _visit(frame.inside(item, body_of(item)), times * trips, wanted, values)
        elif item.opcode == "conditional":
            if any(branch in wanted for branch in branches_of(item)):
                raise _UnknownCountError
        elif item.opcode in ONE_CALL or item.opcode.endswith("-start"):
            for inside in item.callees:
                yield from _visit(frame.inside(item, inside), times, wanted, values)
