"""`python -m compare.trace DIR|FILE --axes data=2,tensor=4`: communication time and measured power of any profile."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compare.cli.options.axes_options import add_axes, axes_of, hint_axes
from compare.cli.options.contract_options import add_contract, contract_of, judge_program_of
from meshes.process.command_line import Parser, name_command, path, print_json

if TYPE_CHECKING:
    from compare.diff.own.case_contract import CaseContract


def main(argv: Sequence[str] | None = None) -> int:
    """Print how a step's time divides, for the full program and by the axes of its communication."""
    parser = Parser(
        prog=name_command("compare.trace"),
        description="Where the time of a profile's steps goes: compute, waits for local copies, communication by mesh "
        "axes and kind, and how much is hidden; each program by source line, part of the model and longest operations; "
        "measured power and heat, where the profile or --measured-power has them.",
        epilog=f"example: {name_command('compare.trace')} profile/ --axes data=2,tensor=4 --json",
    )
    add = parser.add_argument
    profile = "an xplane.pb or a Chrome trace (*.trace.json, .gz), or the folder of one session; or measured power"
    add("profile", metavar="DIR|FILE", help=profile)
    add_axes(parser)
    add("--hlo", metavar="FILE", help="the compiled HLO text of the program, if the profile holds none")
    power = "power measured meanwhile: files <metric>_<rank>.csv of Zeus (CharLLM-PPT's), joined by the wall clock"
    add("--measured-power", metavar="DIR|FILE", type=path, help=power)
    parser.add_renamed("--power", now="--measured-power", metavar="DIR|FILE", type=path)
    add("--per-host", metavar="N", type=int, help="ranks of a host in those files")
    program = "this program alone, like jit_step; each execution is a step"
    add("--program", metavar="NAME", default="", help=program)
    add("--json", action="store_true", help="print the means as JSON")
    add_contract(parser)
    options = parser.parse_args(argv)
    if options.per_host is not None and options.per_host < 1:
        parser.error(f"--per-host is at least 1, not {options.per_host}")
    axes, contract = axes_of(options), contract_of(options, parser)

    from compare.timeline.timeline import plain_strings

    with plain_strings():
        return _answer(options, axes, contract)


def _answer(options: Namespace, axes: Mapping[str, int], contract: "CaseContract | None") -> int:
    from pathlib import Path

    from compare.profile.power.files import add_power, holds_power, read_power
    from compare.report.model.codec import encode

    if holds_power(Path(options.profile)):
        from compare.metrics.meters import summarize_files

        files = read_power(Path(options.profile), per_host=options.per_host)
        if options.json:
            print_json({"label": files.label, "power": encode(summarize_files(files))})
        else:
            from compare.render.time.measured_power import print_measured

            print_measured(files.label, summarize_files(files))
        return 0

    from compare.hlo.proto.program import write_hlo_text
    from compare.hlo.text.files import read_file
    from compare.metrics.program_times import list_longest, time_programs
    from compare.metrics.summary import summarize_tracks
    from compare.profile.join.profile import read_profile
    from compare.profile.xplane.reader import profile_files
    from compare.timeline.programs import find_program, select_program
    from compare.timeline.tracks.times import measure_times
    from compare.timeline.tracks.tracks import DeviceTracks

    hlo = read_file(options.hlo, binary=write_hlo_text) if options.hlo else None
    timeline = read_profile(profile_files(options.profile), axes=axes, hlo=hlo)
    if options.measured_power:
        timeline = add_power(timeline, read_power(options.measured_power, per_host=options.per_host))
    if options.program:
        timeline = select_program(timeline, find_program(timeline, options.program))
    tracks = DeviceTracks.of(timeline)
    summary, programs = summarize_tracks(tracks), time_programs(timeline)
    verdict = judge_program_of(timeline, contract, options, hlo) if contract else None
    if options.json:
        found = {"verdict": encode(verdict)} if verdict else {}
        print_json({"power": None} | encode(summary) | {"programs": [encode(each) for each in programs]} | found)
    else:
        from compare.render.time.profile_summary import print_trace
        from compare.render.time.program_tables import print_programs

        print_trace(summary, measure_times(tracks, by=["axes", "kind"]).means(), longest=list_longest(tracks))
        print_programs(programs, step=timeline.step_program)
        if verdict:
            from compare.diff.own.profile_verdict import print_verdict

            print_verdict(verdict)
    hint_axes(options, summary.per_step.by_axes)
    return 0
