"""`python -m compare.simulate`: what a collective costs on a network that need not exist."""

import json
import sys
from collections.abc import Sequence

from compare.simulate.answer import answer_request
from compare.simulate.graphs.request import is_graph_request, parse_graph_request
from compare.simulate.request import parse_request
from compare.simulate.text import list_lines
from meshes.process.command_line import run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Print the answer: cycles or ns; of a run or a trace, step times."""
    words = list(sys.argv[1:] if argv is None else argv)
    if is_graph_request(words):
        from compare.simulate.graphs.answer import answer_graphs

        return answer_graphs(parse_graph_request(words))
    if words and not words[0].startswith("-"):
        from compare.simulate.what_if.answer import answer_what_if
        from compare.simulate.what_if.request import parse_what_if

        return answer_what_if(parse_what_if(words))
    request = parse_request(argv)
    answer = answer_request(request)
    if request.json:
        print(json.dumps(answer.to_json()))
    else:
        print(*list_lines(request, answer), sep="\n")
    return 0


if __name__ == "__main__":
    run_command(main)
