"""`wirediff replay FOLDER`: a Chakra trace, or a run by ASTRA-sim's rules."""

from collections.abc import Sequence

from compare.simulate.graphs.answer import answer_graphs
from compare.simulate.graphs.request import parse_graph_request


def main(argv: Sequence[str]) -> int:
    """Print ns on our own engine, or ASTRA-sim's cycles."""
    return answer_graphs(parse_graph_request(argv))
