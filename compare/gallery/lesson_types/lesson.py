"""A lesson of the gallery: a pattern, what its sharding needs by hand calculation, and the words that explain it.

Every number is a formula of the letters that the page shows: `"T·F·2"`.  What programs emit is never written here: it
is compiled, and compared with these.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

LAW, COMPILER, ADVICE = "law", "this compiler", "advice"
STANDINGS = {
    LAW: "holds for every compiler: it follows from where the data are and where they are needed",
    COMPILER: "what libtpu emitted here, under both partitioners unless the page says otherwise; another version may "
    "differ",
    ADVICE: "what to write; the page shows why",
}
"""Standing of a rule -> how general it is."""

TOPOLOGIES = {4: "v5e:2x2", 8: "v5e:2x4"}
"""Chips -> the slice that a lesson is compiled for: few enough to draw, and enough for two axes."""

SHARDY, GSPMD = "jax/shardy", "jax/gspmd"
TORCH, TORCH_SHARDY = "torchxla/gspmd", "torchxla/shardy"

JAX = (SHARDY, GSPMD)
PROGRAMS = (SHARDY, GSPMD, TORCH, TORCH_SHARDY)
"""Arm and partitioner of each program of a lesson, in the order of the pages."""

BYTES = {"bf16": 2, "s8": 1, "s32": 4, "f32": 4}

WIRE = {
    "all-reduce": "2·(n−1)/n",
    "all-gather": "(n−1)/n",
    "reduce-scatter": "(n−1)/n",
    "all-to-all": "(n−1)/n",
}
"""Fraction of the payload that each of n devices sends by a bandwidth-optimal algorithm (docs/definitions.md)."""


@dataclass(frozen=True, slots=True)
class Move:
    """One collective, by hand calculation."""

    collective: str
    """kind@axes."""
    formula: str
    """Payload bytes of one."""
    what: str
    """What it carries."""
    times: int = field(default=1, kw_only=True)
    senders: int | None = field(default=None, kw_only=True)
    """For a permute, the number of devices that send; the others only receive."""
    group: int = field(default=0, kw_only=True)
    """Devices of a group, if fewer than the axes have: `tp:sub`."""

    @property
    def kind(self) -> str:
        return self.collective.partition("@")[0]

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(self.collective.partition("@")[2].split(","))


@dataclass(frozen=True, slots=True)
class Deviation:
    """Programs that emit something other than the sharding needs, and why."""

    programs: tuple[str, ...]
    moves: tuple[Move, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Alone:
    """What the devices have before any communication: an array, its split, and the axes of partial sums."""

    name: str
    dims: str
    axes: tuple[str | None, ...]
    partial: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One page of the gallery."""

    name: str
    """`matmul-contracting`; of the pattern in both arms, `matmul_contracting`."""
    title: str
    mesh: Mapping[str, int]
    """Axis -> size, outermost first."""
    sizes: Mapping[str, int]
    """Letter -> size."""
    takes: Mapping[str, str]
    """Array -> its dims, a letter each."""
    gives: Mapping[str, str]
    dtypes: Mapping[str, str] = field(default_factory=dict)
    """Array -> dtype, for arrays that are not bf16."""
    story: str
    """Paragraphs, with a blank line between."""
    alone: tuple[Alone, ...] = ()
    alone_words: str = ""
    needs: tuple[Move, ...]
    """The collectives that this sharding requires, in their usual form."""
    but: tuple[Deviation, ...] = ()
    rule: str
    standing: str
    """How general the rule is: a key of STANDINGS."""
    border: str = ""
    """Where the rule ends, or which lesson seems to contradict it: with sizes on both sides, each compiled."""
    question: str
    answer: str
    absent: Mapping[str, str] = field(default_factory=dict)
    """Arm, or program, -> why there is no such program."""

    def __post_init__(self) -> None:
        if self.standing not in STANDINGS:
            raise ValueError(f"{self.name}: a rule is {' or '.join(map(repr, STANDINGS))}, not {self.standing!r}")

    @property
    def pattern(self) -> str:
        return self.name.replace("-", "_")

    @property
    def num_devices(self) -> int:
        return prod(self.mesh.values())

    @property
    def topology(self) -> str:
        return TOPOLOGIES[self.num_devices]

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(program for program in PROGRAMS if not {program, program.partition("/")[0]} & self.absent.keys())

    @property
    def arrays(self) -> dict[str, str]:
        """Argument or result -> its dims."""
        return {**self.takes, **self.gives}

    @property
    def letters(self) -> dict[str, int]:
        """The values of the names in a formula: letters of dims, and axes."""
        return {**self.sizes, **self.mesh}

    def shape(self, array: str) -> tuple[int, ...]:
        return tuple(_value(letter, self.sizes) for letter in self.arrays[array].split())

    def dtype(self, array: str) -> str:
        return self.dtypes.get(array, "bf16")

    def expected(self, program: str) -> tuple[Move, ...]:
        """The collectives that the lesson states for a program."""
        return next((other.moves for other in self.but if program in other.programs), self.needs)

    def why(self, program: str) -> str:
        return next((other.why for other in self.but if program in other.programs), "")

    def payload(self, move: Move) -> int:
        return evaluate_formula(move.formula, self.letters)

    def group_size(self, move: Move) -> int:
        """Devices of each group."""
        return move.group or prod(self.mesh[axis] for axis in move.axes)

    def wire(self, move: Move) -> Fraction:
        """Bytes on the wire of one execution, mean over devices."""
        size = self.group_size(move)
        payload = Fraction(self.payload(move))
        if move.kind == "collective-permute":
            return payload * (self.num_devices if move.senders is None else move.senders) / self.num_devices
        return payload * Fraction(size - 1, size) * (2 if move.kind == "all-reduce" else 1)


Emitted = Counter[tuple[str, int]]
"""(kind@axes, payload bytes) -> executions a step on the busiest device."""


def count_moves(lesson: Lesson, moves: tuple[Move, ...]) -> Emitted:
    counts: Emitted = Counter()
    for move in moves:
        counts[move.collective, lesson.payload(move)] += move.times
    return counts


def evaluate_formula(formula: str, letters: Mapping[str, int]) -> int:
    """The value of `"T·F·2/tp"`, an integer; `+` adds."""
    total = Fraction(0)
    for term in formula.split(" + "):
        over, *under = term.split("/")
        value = Fraction(prod(_value(each, letters) for each in over.split("·")))
        for each in under:
            value /= _value(each, letters)
        total += value
    if total.denominator != 1:
        raise ValueError(f"{formula} is {total}, no whole number of bytes")
    return int(total)


def _value(word: str, letters: Mapping[str, int]) -> int:
    return int(word) if word.isdigit() else letters[word]
