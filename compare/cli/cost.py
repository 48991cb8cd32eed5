"""`wirediff cost --collective KIND --bytes N --machine NAME`: one collective, or messages, on any network."""

import json
from collections.abc import Sequence

from compare.cli.options.cost_request import parse_request


def main(argv: Sequence[str] | None = None) -> int:
    """Print ns, or ASTRA-sim's cycles."""
    request = parse_request(argv)

    from compare.simulate.answer import answer_request
    from compare.simulate.print_answer import list_lines

    answer = answer_request(request)
    print(*([json.dumps(answer.to_json())] if request.json else list_lines(request, answer)), sep="\n")
    return 0
