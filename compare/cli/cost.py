"""`wirediff cost --collective KIND --bytes N --machine NAME`: one collective, or messages, on any network."""

from collections.abc import Sequence

from compare.cli.options.cost_options import cost_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print ns, or ASTRA-sim's cycles."""
    parser = cost_parser()
    options = parser.parse_args(argv)

    from compare.cli.options.cost_request import read_request

    request = read_request(options, parser)

    import json

    from compare.simulate.answer import answer_request
    from compare.simulate.print_answer import list_lines

    answer = answer_request(request)
    print(*([json.dumps(answer.to_json())] if request.json else list_lines(request, answer)), sep="\n")
    return 0
