"""`python -m compare.plan --mesh tp4pp2`: the contract alone, in under a second, without a framework."""

from collections.abc import Sequence

from compare.cli.options.case_options import case_parser
from meshes.process.command_line import print_json


def main(argv: Sequence[str] | None = None) -> int:
    """Print what the plan's reference algorithms move in one step, row by row."""
    parser = case_parser(
        "compare.plan",
        "Print the collectives that the plan needs: those of the reference algorithms.",
        example="--mesh tp4pp2 --json",
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args(argv)
    from compare.cli.options.case_request import print_list, read_case

    if "list" in options:
        print_list(options)
        return 0
    from compare.report.plan import plan

    contract = plan(read_case(options, contract_only=True))
    if options.json:
        print_json(contract.to_json())
    else:
        from compare.render.report.plan_tables import print_plan

        print_plan(contract)
    return 0
