"""Framework-induced bytes: what one arm adds beyond what every arm adds, under the same partitioner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compare.report.model.findings import PartitionerPair
from compare.report.model.program import CollectiveRow
from compare.report.rows import excess_by_place

PREFERRED = "gspmd"
"""The partitioner to compare under where the arms' defaults differ: it needs no rewritten program."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One judged program of an arm that can be compared with those of other arms."""

    cell: str
    partitioner: str | None
    """The one that it was compiled under."""
    rows: Sequence[CollectiveRow]
    alike: bool = True
    """Whether it differs from the arm's default in nothing but the partitioner."""

    @property
    def excess_bytes(self) -> int:
        return sum(row.excess_bytes for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessSplit:
    """One arm's excess bytes, in parts that add up: common + framework + partitioner (which can be negative)."""

    cell: str
    """The cell that was compared with the other arms."""
    common: int
    framework_induced: int
    partitioner_induced: int
    """Excess bytes of the default cell beyond those of the compared cell: gone with the other partitioner."""


def choose_compared(arms: Mapping[str, Sequence[Candidate]]) -> dict[str, Candidate]:
    """For each arm the program to compare, all of one partitioner: the defaults where their partitioners agree.

    Candidates come default first.  Empty where fewer than two arms were judged or no partitioner is common to all.
    """
    pairs = pair_by_partitioner(arms)
    defaults = [candidates[0].partitioner for candidates in arms.values() if candidates]
    ordered = sorted(pairs, key=lambda name: (-defaults.count(name), name != PREFERRED, name))
    return pairs[ordered[0]] if ordered else {}


def pair_by_partitioner(arms: Mapping[str, Sequence[Candidate]]) -> dict[str, dict[str, Candidate]]:
    """Partitioner -> for each arm its program of that partitioner; those that every arm was compiled under.

    Empty where fewer than two arms were judged.
    """
    by_arm: dict[str, dict[str, Candidate]] = {}
    for arm, candidates in arms.items():
        for candidate in candidates:
            known = by_arm.setdefault(arm, {})
            if candidate.alike and candidate.partitioner:
                known.setdefault(candidate.partitioner, candidate)
    shared = set.intersection(*map(set, by_arm.values())) if len(by_arm) > 1 else set()
    return {name: {arm: known[name] for arm, known in by_arm.items()} for name in sorted(shared)}


def common_bytes(programs: Mapping[str, Candidate]) -> dict[tuple[str, str], int]:
    """(scope, axes) -> the excess bytes that every arm has."""
    sums = [excess_by_place(program.rows) for program in programs.values()]
    places = set.intersection(*map(set, sums)) if sums else set()
    return {place: min(excess[place] for excess in sums) for place in sorted(places)}


def split_excess(arms: Mapping[str, Sequence[Candidate]]) -> dict[str, ExcessSplit]:
    """For each arm the split of its excess bytes; empty where arms cannot be compared, or rows cannot be counted."""
    return _split(choose_compared(arms), arms)


def _split(chosen: Mapping[str, Candidate], arms: Mapping[str, Sequence[Candidate]]) -> dict[str, ExcessSplit]:
    """The split for the chosen programs, one of each arm."""
    if any(row.executions is None for program in chosen.values() for row in program.rows):
        return {}
    common = sum(common_bytes(chosen).values())
    return {
        arm: ExcessSplit(
            cell=program.cell,
            common=common,
            framework_induced=program.excess_bytes - common,
            partitioner_induced=arms[arm][0].excess_bytes - program.excess_bytes,
        )
        for arm, program in chosen.items()
    }


def compare_by_partitioner(arms: Mapping[str, Sequence[Candidate]]) -> tuple[PartitionerPair, ...]:
    """Common and framework-induced bytes under each partitioner that all arms were compiled under.

    The first is the pair of the totals.  `framework_induced` is `None` where rows cannot be counted.
    """
    chosen, pairs = choose_compared(arms), []
    for partitioner, programs in pair_by_partitioner(arms).items():
        parts = _split(programs, arms)
        pairs.append(
            PartitionerPair(
                partitioner=partitioner,
                cells={arm: program.cell for arm, program in programs.items()},
                chosen=programs == chosen,
                common=next((part.common for part in parts.values()), None),
                framework_induced={arm: parts[arm].framework_induced if parts else None for arm in programs},
            )
        )
    return tuple(sorted(pairs, key=lambda pair: not pair.chosen))
