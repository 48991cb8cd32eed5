"""The options of a contract for a program that is no run's: `--model NAME --phase decode --batch B --seq S`."""

import argparse
from typing import TYPE_CHECKING

from compare.cli.options.names_options import add_names, names_of
from meshes.process.command_line import Parser, path, whole_number

if TYPE_CHECKING:
    from compare.diff.own.case_contract import CaseContract
    from compare.diff.own.profile_verdict import ProfileVerdict
    from compare.hlo.text.module import Module
    from compare.timeline.timeline import Timeline


def add_contract(parser: Parser) -> None:
    """Add the options; without --model or --checkpoint nothing is judged."""
    group = parser.add_argument_group("the verdict, against the contract of a model's shapes on --mesh")
    model = group.add_mutually_exclusive_group().add_argument
    model("--model", metavar="NAME", default="", help="a model preset, like llama-3.1-8b")
    model("--checkpoint", metavar="DIR", type=path, help="a Hugging Face folder whose config.json has the shapes")
    add = group.add_argument
    add("--phase", choices=("prefill", "decode"), help="of the program (default: decode)")
    add("--batch", metavar="B", type=whole_number, help="global batch size, in sequences (default: 8)")
    add("--seq", metavar="S", type=whole_number, help="prompt length; in decode, tokens in the cache (default: 1024)")
    add_names(parser)


def contract_of(options: argparse.Namespace, parser: Parser) -> "CaseContract | None":
    """The contract that was asked for; `None` where none was."""
    if not options.model and options.checkpoint is None:
        for word in ("phase", "batch", "seq", "scopes", "owns"):
            if getattr(options, word) is not None:
                parser.error(f"--{word} is of a contract, whose shapes --model or --checkpoint name")
        return None
    if not options.mesh:
        parser.error("a contract needs the mesh in wirediff notation, like --mesh dp2tp4: --axes says no roles of axes")
    from compare.diff.own.case_contract import contract_rows

    return contract_rows(
        options.mesh,
        model=options.model or None,
        checkpoint=options.checkpoint,
        phase=options.phase or "decode",
        batch=options.batch or 8,
        seq=options.seq or 1024,
    )


def judge_program_of(
    timeline: "Timeline", contract: "CaseContract", options: argparse.Namespace, hlo: "Module | None"
) -> "ProfileVerdict":
    """The verdict on the program of the steps, else on the one with the most time, by the profile's text or --hlo."""
    from compare.diff.own.profile_verdict import judge_profile
    from compare.profile.join.carried_programs import ProfilePrograms, read_protos
    from compare.profile.join.hosts import read_spaces
    from compare.profile.xplane.reader import profile_files
    from compare.timeline.errors import TimingError
    from compare.timeline.programs import list_programs

    programs = [timeline.step_program] if timeline.step_program else list_programs(timeline)
    if not programs:
        raise TimingError("the profile shows no execution of a program, so there is none to judge")
    if hlo is not None:
        text = hlo.text
    else:
        protos = read_protos(read_spaces(profile_files(options.profile)))
        text = ProfilePrograms(protos, axes={}).text_of(programs[0])
    return judge_profile(timeline, programs[0], text, contract, names_of(options))
