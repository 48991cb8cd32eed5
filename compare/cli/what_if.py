"""`wirediff what-if RUN --scale ici=2`: the programs of a run on other links, machines or algorithms."""

from collections.abc import Sequence

from compare.simulate.what_if.answer import answer_what_if
from compare.simulate.what_if.request import parse_what_if


def main(argv: Sequence[str]) -> int:
    """Print step times, and what is exposed of them."""
    return answer_what_if(parse_what_if(argv))
