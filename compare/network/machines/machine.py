"""A machine: dims of ranks with their links, and how collectives run on them.

Rank = coordinate of dim 0 + size of dim 0 × (coordinate of dim 1 + …): dim 0 is the fastest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, prod

from compare.network.machines.kinds import (
    ALGORITHMS,
    CUSTOM,
    DIM_KINDS,
    DIRECT,
    FULLY_CONNECTED,
    KINDS,
    LINKS,
    LOCAL_BW_AWARE,
    MULTI,
    POLICIES,
    RING,
    SHARED,
    SWITCH,
    THROUGH_ALL,
)
from compare.timeline.errors import TimingError

MOST_DIMS = 6
MOST_RANKS = 1 << 16
MOST_CHUNKS = 10_000
_RATES = 1e-9, 1e12
"""Bytes a ns, least and most."""
_MOST = 2**31 - 1
_MOST_NS = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class Dim:
    """Ranks that differ in one coordinate only, and the links between them."""

    kind: str
    """`ring`, `line` (a ring without the link between its ends), `switch` or `fully-connected`."""
    size: int
    bytes_per_ns: float
    """One link, one direction."""
    latency_ns: float
    """One hop; through a switch there are two."""

    def __post_init__(self) -> None:
        if self.kind not in DIM_KINDS:
            raise TimingError(f"kind: unknown kind of dim {self.kind!r}; known are {', '.join(DIM_KINDS)}")
        if not 2 <= self.size <= MOST_RANKS:
            raise TimingError(f"size: a dim has 2 to {MOST_RANKS:,} ranks, not {self.size}")
        if not (isfinite(self.bytes_per_ns) and self.bytes_per_ns > 0):
            raise TimingError(f"bandwidth: the bandwidth of a dim is more than 0, not {self.bytes_per_ns:g}")
        if not _RATES[0] <= self.bytes_per_ns <= _RATES[1]:
            raise TimingError(f"bandwidth: {_RATES[0]:g} to {_RATES[1]:g} bytes a ns, not {self.bytes_per_ns:g}")
        if not 0 <= self.latency_ns <= _MOST_NS:
            raise TimingError(f"latency: the latency of a dim is 0 to {_MOST_NS:g}, not {self.latency_ns:g}")

    def hops(self, source: int, target: int) -> int:
        """Links between two coordinates of this dim, the shorter way."""
        if source == target:
            return 0
        if self.kind == SWITCH:
            return 2
        if self.kind == FULLY_CONNECTED:
            return 1
        ahead = abs(target - source)
        return min(ahead, self.size - ahead) if self.kind == RING else ahead


@dataclass(frozen=True, slots=True)
class Send:
    """One message of a custom algorithm: one part of the data."""

    source: int
    target: int
    part: int
    reduces: bool
    """Whether the receiver adds it to its own; else it takes its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomAlgorithm:
    """A collective in one dim, message by message, as a user wrote it (`machines.custom`)."""

    name: str
    kind: str
    size: int
    """Ranks."""
    parts: int
    sends: tuple[Send, ...]
    """In an order in which they can be done one after another."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """How a collective runs in one dim."""

    name: str = RING
    window: int | None = None
    """Of `direct`: messages of a rank in flight; `None` for all of them."""
    custom: CustomAlgorithm | None = None

    def __post_init__(self) -> None:
        if self.name not in (*ALGORITHMS, CUSTOM) or (self.name == CUSTOM) != (self.custom is not None):
            raise TimingError(f"algorithm: unknown algorithm {self.name!r}; known are {', '.join(ALGORITHMS)}")
        if self.window is not None and (self.in_one_dim != DIRECT or self.window < 1):
            raise TimingError(f"algorithm: a window from 1 belongs to direct, not {self.window} to {self.name}")

    @property
    def through_all(self) -> bool:
        """Whether it goes over all ranks of a machine."""
        return self.name in THROUGH_ALL

    @property
    def in_one_dim(self) -> str:
        """Its name without that."""
        return THROUGH_ALL.get(self.name, self.name)

    @property
    def text(self) -> str:
        if self.custom is not None:
            return f"{CUSTOM}:{self.custom.name}"
        return self.name if self.window is None else f"{self.name}:{self.window}"


@dataclass(frozen=True, slots=True)
class Algorithms:
    """For each kind of collective the algorithm of each dim."""

    by_kind: tuple[tuple[Algorithm, ...], ...]
    """In the order of KINDS."""

    def of(self, kind: str) -> tuple[Algorithm, ...]:
        """Raises `TimingError` for an unknown kind."""
        if kind not in KINDS:
            raise TimingError(f"unknown collective {kind!r}; known are {', '.join(KINDS)}")
        return self.by_kind[KINDS.index(kind)]

    def replace(self, by_kind: Mapping[str, tuple[Algorithm, ...]]) -> "Algorithms":
        """Others for some kinds."""
        return Algorithms(tuple(by_kind.get(kind, self.of(kind)) for kind in KINDS))

    def change(self, change: Callable[[tuple[Algorithm, ...]], tuple[Algorithm, ...]]) -> "Algorithms":
        """The same change for every kind."""
        return Algorithms(tuple(map(change, self.by_kind)))

    @classmethod
    def alike(cls, algorithms: tuple[Algorithm, ...]) -> "Algorithms":
        """The same for every kind."""
        return cls((algorithms,) * len(KINDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Dims, and how collectives are cut, queued and reduced."""

    name: str = "machine"
    dims: tuple[Dim, ...]
    algorithms: Algorithms
    multi: str = LOCAL_BW_AWARE
    """How an all-reduce crosses dims: `baseline`, one all-reduce a dim; `local-bw-aware`, reduce-scatters up, an
    all-reduce in the last dim, all-gathers down; `greedy`, the same with chunks in several orders of the dims."""
    compiled: tuple[str, ...] = ()
    """Kinds that run by the algorithm which the compiler chose, where a program says it and the dims are a torus."""
    chunks: int = 1
    """Pieces that a collective is cut into; each goes through the dims on its own."""
    active_chunks: int = 1
    """Pieces that may be under way in a dim, over all its queues."""
    queues: int = 1
    """Of each dim."""
    policy: str = "fifo"
    """Which of several waiting collectives is next, where `in_flight` lets them wait."""
    links: str = SHARED
    in_flight: int | None = None
    """Transfers of a rank under way at once, in our own model; `None`: any number, which share their links."""
    memory_bytes_per_ns: float | None = None
    """A reduction reads twice and writes once; `None`: reductions cost nothing."""
    peak_flops_per_ns: float | None = None
    """Of one rank: compute whose flops or bytes are known lasts as a roofline says, in our own model; `None`: as the
    graph says."""
    endpoint_ns: int | None = None
    """Between a message and what a rank does with it; `None`: 0, and as ASTRA-sim its default, 10."""
    launch_ns: float = 0.0
    """Before the first step of a collective."""
    custom: tuple[CustomAlgorithm, ...] = ()
    """That its algorithms can name."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.dims) <= MOST_DIMS:
            raise TimingError(f"dims: a machine has 1 to {MOST_DIMS} dims, not {len(self.dims)}")
        if self.num_ranks > MOST_RANKS:
            raise TimingError(f"dims: at most {MOST_RANKS:,} ranks, not {self.num_ranks:,}")
        for kind in KINDS:
            listed = self.algorithms.of(kind)
            many = len(listed)
            if many != len(self.dims) and not (0 < many < len(self.dims) and listed[-1].through_all):
                raise TimingError(f"algorithm: {many} algorithms of {kind} for {len(self.dims)} dims")
            for algorithm in listed[:-1]:
                if algorithm.through_all:
                    raise TimingError(f"algorithm: {algorithm.name} goes over all ranks and stands last")
        for kind in self.compiled:
            _one_of("compiled", kind, KINDS)
        _one_of("multi", self.multi, MULTI)
        _one_of("policy", self.policy, POLICIES)
        _one_of("links", self.links, LINKS)
        for name, value in (("chunks", self.chunks), ("active-chunks", self.active_chunks), ("queues", self.queues)):
            if not 1 <= value <= _MOST:
                raise TimingError(f"{name}: a whole number from 1, not {value}")
        if self.in_flight is not None and not 1 <= self.in_flight <= _MOST:
            raise TimingError(f"in-flight: a whole number from 1, not {self.in_flight}")
        if self.chunks > MOST_CHUNKS:
            raise TimingError(f"chunks: at most {MOST_CHUNKS:,}, not {self.chunks:,}")
        if self.memory_bytes_per_ns is not None and not _RATES[0] <= self.memory_bytes_per_ns <= _RATES[1]:
            raise TimingError(f"memory: {_RATES[0]:g} to {_RATES[1]:g} bytes a ns, not {self.memory_bytes_per_ns:g}")
        if self.peak_flops_per_ns is not None and not _RATES[0] <= self.peak_flops_per_ns <= _RATES[1]:
            raise TimingError(f"peak: {_RATES[0]:g} to {_RATES[1]:g} flops a ns, not {self.peak_flops_per_ns:g}")
        for name, ns in (("endpoint", float(self.endpoint_ns or 0)), ("launch", self.launch_ns)):
            if not (isfinite(ns) and 0 <= ns <= _MOST):
                raise TimingError(f"{name}: 0 or more, not {ns:g}")

    @property
    def num_ranks(self) -> int:
        return prod(dim.size for dim in self.dims)

    @property
    def slots(self) -> int:
        """Chunks under way in one queue."""
        return -(-self.active_chunks // self.queues)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """One for each dim."""
        places = []
        for dim in self.dims:
            places.append(rank % dim.size)
            rank //= dim.size
        return tuple(places)

    def list_dims(self, group: Sequence[int] | None) -> tuple[int, ...]:
        """The dims in which the ranks of a group differ; all dims where it is `None`."""
        if group is None:
            return tuple(range(len(self.dims)))
        places = [(self.stride(index), dim.size) for index, dim in enumerate(self.dims)]
        return tuple(
            index
            for index, (stride, size) in enumerate(places)
            if any(rank // stride % size != group[0] // stride % size for rank in group)
        )

    def is_filled(self, group: Sequence[int]) -> bool:
        """Whether a group has all the ranks of the dims in which its ranks differ."""
        return prod(self.dims[index].size for index in self.list_dims(group)) == len(group)

    def stride(self, index: int) -> int:
        """Ranks between neighbours of a dim."""
        return prod(dim.size for dim in self.dims[:index])


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise TimingError(f"{name}: unknown {value!r}; known are {', '.join(known)}")
