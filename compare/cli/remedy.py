"""`python -m compare.remedy --mesh tp4pp2`: which code changes remove avoidable bytes; each is compiled."""

from collections.abc import Sequence

from compare.cli.options.remedy_options import remedy_parser
from meshes.process.command_line import print_json
from meshes.process.log import log


def main(argv: Sequence[str] | None = None) -> int:
    """0: every program was measured; 1: some arm or phase could not be, the rest is reported."""
    options = remedy_parser().parse_args(argv)
    if "list" in options:
        from compare.cli.options.case_request import print_list

        print_list(options)
        return 0
    from compare.cli.options.remedy_request import read_request

    arms, case = read_request(options)
    from compare.remedy.report import find_remedies
    from compare.run import cache
    from compare.run.folder.run_folder import REMEDIES
    from meshes.process import atomic_files

    with cache.open_cache(bypass=options.no_cache) as kept:
        result = find_remedies(case, arms=arms, cache=kept, most=options.max_compiles, timeout_s=options.timeout)
    pages = [options.html] if options.html else []
    if options.into:
        import json

        data, shown = (options.into / name for name in REMEDIES)
        atomic_files.write_text(data, json.dumps(result, indent=1) + "\n")
        pages.append(shown)
    for place in pages:
        from compare.remedy.page import page

        atomic_files.write_text(place, page(result))
        log().info("%s", place)
    if options.json:
        print_json(result)
    else:
        from compare.remedy.print_remedies import print_remedies

        print_remedies(result)
    return 1 if any(phase["error"] for arm in result["arms"].values() for phase in arm["phases"].values()) else 0
