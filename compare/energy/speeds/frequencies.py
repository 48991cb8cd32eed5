"""The range of `--frequency`."""

import re
from collections.abc import Sequence

from compare.timeline.errors import TimingError
from meshes.process.one_line import quote

_MOST_POINTS = 200
_SLOWEST, _FASTEST = 0.05, 5.0


def parse_frequencies(words: str) -> tuple[float, ...]:
    """`0.5:1.1:0.05`: from 0.5 to 1.1, both included.  `TimingError`, one line, for anything else."""
    number = r"(-?\d{1,6}(?:\.\d{1,6})?)"
    match = re.fullmatch(f"{number}:{number}:{number}", words.strip(), re.ASCII)
    if not match:
        raise TimingError(f"--frequency: {quote(words)} is no range; write A:B:STEP of the nominal, like 0.5:1.1:0.05")
    first, last, step = map(float, match.groups())
    if not _SLOWEST <= first < last <= _FASTEST:
        raise TimingError(
            f"--frequency: from {first:g} to {last:g}; A is less than B, and both are from {_SLOWEST:g} to {_FASTEST:g}"
        )
    if step <= 0:
        raise TimingError(f"--frequency: STEP is {step:g}; it is above 0, like 0.05")
    count = int((last - first) / step + 1e-9) + 1
    if not 2 <= count <= _MOST_POINTS:
        raise TimingError(f"--frequency: {count} points; 2 to {_MOST_POINTS} are modelled")
    return tuple(round(first + index * step, 9) for index in range(count))


def join_frequencies(words: Sequence[str]) -> list[str]:
    """A command line whose `--frequency -0.5:1:0.1` is one word: argparse takes the second for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--frequency" and re.match(r"-[\d.]", word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined
