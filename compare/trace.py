"""`python -m compare.trace DIR|FILE --axes data=2,tensor=4`: communication time of any profile, by mesh axes."""

from collections.abc import Sequence

from compare.hlo.text.files import read_file
from compare.run.cli.axes_options import add_axes, axes_of, hint_axes
from meshes.process.command_line import Parser, print_json, run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Print how a step's time divides, for the full program and by the axes of its communication."""
    parser = Parser(
        prog="python -m compare.trace",
        description="Communication time of a profile's steps, by mesh axes and kind, and how much of it compute hides.",
        epilog="example: python -m compare.trace profile/ --axes data=2,tensor=4 --json",
    )
    parser.add_argument(
        "profile",
        metavar="DIR|FILE",
        help="an xplane.pb or a Chrome trace (*.trace.json, .gz), or the folder of one session",
    )
    add_axes(parser)
    parser.add_argument("--hlo", metavar="FILE", help="the compiled HLO text of the program, if the profile holds none")
    parser.add_argument("--json", action="store_true", help="print the means as JSON")
    options = parser.parse_args(argv)
    axes = axes_of(options)

    from compare.report.model.codec import encode
    from compare.timing.join.profile import read_profile
    from compare.timing.metrics.summary import summarize_tracks
    from compare.timing.tracks.times import measure_times
    from compare.timing.tracks.tracks import DeviceTracks
    from compare.timing.xplane.reader import profile_files

    timeline = read_profile(
        profile_files(options.profile), axes=axes, hlo=read_file(options.hlo) if options.hlo else None
    )
    tracks = DeviceTracks.of(timeline)
    summary = summarize_tracks(tracks)
    if options.json:
        print_json(encode(summary))
    else:
        from compare.render.time.profile_summary import print_trace

        print_trace(summary, measure_times(tracks, by=["axes", "kind"]).means())
    hint_axes(options, summary.per_step.by_axes)
    return 0


if __name__ == "__main__":
    run_command(main)
