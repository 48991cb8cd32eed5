"""Flows over shared links: each moves at the same rate as those beside it until a link is full (max-min fairness).

A flow puts a fraction of each of its links to use when it has them to itself; at rate r, r times as much.  Rates rise
together, none above 1, and a flow stops rising when one of its links is full (progressive filling: Bertsekas and
Gallager, *Data Networks*, section 6.5.2).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

_FULL = 1 + 1e-9


@dataclass(slots=True, eq=False)
class Flow:
    """The bytes of one phase under way."""

    ended: Callable[[], None]
    """What comes after it."""
    remaining_ns: float
    """At rate 1."""
    uses: tuple[tuple[int, float], ...]
    """(link, fraction of it in use at rate 1)."""
    rate: float = 1.0
    since: float = 0.0
    version: int = 0


@dataclass(slots=True)
class SharedLinks:
    """All flows under way."""

    on_link: dict[int, dict[Flow, float]] = field(default_factory=dict)
    slowed: set[Flow] = field(default_factory=set)

    def start(self, flow: Flow, now: float) -> list[Flow]:
        """Returns the flows whose end is another than before, this one among them."""
        flow.since = now
        shared = False
        for link, fraction in flow.uses:
            others = self.on_link.setdefault(link, {})
            others[flow] = fraction
            shared = shared or (len(others) > 1 and sum(others.values()) > _FULL)
        return self._share([flow], now) if shared else [flow]

    def end(self, flow: Flow, now: float) -> list[Flow]:
        """Returns the flows whose end is another than before."""
        beside: dict[Flow, None] = {}
        for link, _ in flow.uses:
            others = self.on_link[link]
            del others[flow]
            if self.slowed:
                beside.update(dict.fromkeys(other for other in others if other in self.slowed))
        self.slowed.discard(flow)
        return self._share(beside, now) if beside else []

    def _share(self, flows: Iterable[Flow], now: float) -> list[Flow]:
        """New rates for some flows and all that these share links with."""
        related = self._related(flows)
        rates = self._fill(related)
        changed = []
        for flow in related:
            if flow.rate != rates[flow] or flow.since == now:
                flow.remaining_ns -= (now - flow.since) * flow.rate
                flow.since, flow.rate = now, rates[flow]
                changed.append(flow)
            (self.slowed.add if flow.rate < 1 else self.slowed.discard)(flow)
        return changed

    def _related(self, flows: Iterable[Flow]) -> list[Flow]:
        seen = dict.fromkeys(flows)
        todo = list(seen)
        while todo:
            for link, _ in todo.pop().uses:
                for other in self.on_link[link]:
                    if other not in seen:
                        seen[other] = None
                        todo.append(other)
        return list(seen)

    def _fill(self, flows: list[Flow]) -> dict[Flow, float]:
        rates = dict.fromkeys(flows, 1.0)
        rising = dict.fromkeys(flows)
        free = {link: 1.0 for flow in flows for link, _ in flow.uses}
        while rising:
            wanted: dict[int, float] = {}
            for flow in rising:
                for link, fraction in flow.uses:
                    wanted[link] = wanted.get(link, 0.0) + fraction
            tightest = min(((free[link] / total, link) for link, total in wanted.items() if total > 0), default=None)
            if tightest is None or tightest[0] >= 1 / _FULL:
                break
            rate, full = max(tightest[0], 0.0), tightest[1]
            for flow in [flow for flow in rising if any(link == full and part > 0 for link, part in flow.uses)]:
                del rising[flow]
                rates[flow] = rate
                for link, fraction in flow.uses:
                    free[link] -= rate * fraction
        return rates
