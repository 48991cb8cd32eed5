"""The types of what a search for remedies finds: remedies.json, `--json`, the terminal and the page.

Bytes are of one step, mean over devices; `step_ns` is the modelled step, None where it cannot be modelled.
"""

from collections.abc import Mapping
from typing import NotRequired, Required, TypedDict

from compare.report.model.codec import JsonObject


class MeasurementJson(TypedDict):
    """One program."""

    unneeded_bytes: int
    induced_bytes: int
    inflated_bytes: int
    missing_bytes: int
    unknown_rows: int
    step_ns: float | None


class Alternative(TypedDict):
    """A remedy that could replace another, and leaves no more bytes."""

    name: str
    code: str
    step_ns: float | None


class RemedyJson(TypedDict):
    """A remedy in words."""

    name: str
    scope: str
    kind: str
    sentence: str
    code: str


class ChosenRemedy(RemedyJson):
    """One of the smallest set."""

    removes_bytes: int
    measured_against: list[str]
    """The other remedies of the set; empty where it was measured alone."""
    as_good: list[Alternative]
    saves_ns: NotRequired[float | None]
    """Of the modelled step; not in what earlier versions wrote."""


class SlowerRemedy(RemedyJson):
    """A change that removes bytes, or is written otherwise, and whose modelled step is longer: not recommended."""

    removes_bytes: int
    saves_ns: float
    """Below 0."""


class FasterRemedy(ChosenRemedy):
    """A change that saves time and no bytes, on top of the smallest set."""

    slower_in: list[str]
    """Phases of the same arm whose modelled step it makes longer."""


class MergedRemedy(RemedyJson):
    """The same of all phases of an arm."""

    removes: dict[str, int]
    """Phase -> bytes."""
    saves: dict[str, float | None]
    """Phase -> ns of the modelled step."""
    slower: list[str]
    """Phases in which it is slower."""
    others: dict[str, dict[str, float | None]]
    """Name of an alternative -> phase -> its step."""


_Together = TypedDict("_Together", {"with": list[str], "in_place_of": list[str]})


class RemedyBeyond(RemedyJson, _Together, total=False):
    """A change of the plan, or collectives by hand, on top of the smallest set or instead of it."""

    error: Required[str]
    helps: Required[bool]
    after: MeasurementJson
    """Only of one that was measured, like `removes_bytes`."""
    removes_bytes: int
    saves_ns: float | None
    """Of the modelled step; not in what earlier versions wrote."""


class FailedSet(TypedDict):
    """A set of remedies whose program could not be measured."""

    names: list[str]
    error: str


class MeasuredSet(MeasurementJson):
    """A set of remedies that was measured."""

    names: list[str]
    error: str
    added_bytes: int
    """Bytes of scopes and axes where the default program has fewer."""


class NamedKind(TypedDict):
    """A remedy's name, and what it changes."""

    name: str
    kind: str


class RemainingGroup(TypedDict):
    """One group of bytes that the smallest set leaves, and what is known about it."""

    scope: str
    axes: str
    kind: str
    verdict: str
    cause: str
    bytes: int
    sentence: str
    gone_with: list[NamedKind]
    less_with: list[str]
    gone_by_hand_in: list[str]
    """Titles of other arms."""
    tried: list[str]
    origins: Mapping[str, int]
    """Origin -> bytes."""


class PhaseResult(TypedDict, total=False):
    """One arm's program of one phase; only the error if it could not be measured."""

    error: Required[str]
    before: MeasurementJson
    after: MeasurementJson
    remedies: list[ChosenRemedy]
    fastest: MeasurementJson
    """With the changes that save time, too; not in what earlier versions wrote, like the two below."""
    faster: list[FasterRemedy]
    slower: list[SlowerRemedy]
    beyond: list[RemedyBeyond]
    remains: list[RemainingGroup]
    missing_remains: int
    tried: list[FailedSet | MeasuredSet]
    not_tried: list[list[str]]


class ArmResult(TypedDict):
    """One arm."""

    title: str
    phases: dict[str, PhaseResult]


class SearchResult(TypedDict):
    """All of a search."""

    case: JsonObject
    compiles: int
    most_compiles: int
    arms: dict[str, ArmResult]
