# PYTHON_ARGCOMPLETE_OK
"""`wirediff`, or `python -m compare`: all commands behind one door, each imported only when it is asked for."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from meshes.process import command_line
from meshes.process.command_line import REFUSED, run_command
from meshes.process.log import complain
from meshes.process.one_line import quote

NAME = "wirediff"


GROUPS: Mapping[str, Mapping[str, str]] = {
    "cases": {
        "run": "compile a model in both frameworks and split its traffic",
        "plan": "the required collectives alone; needs no framework",
        "report": "draw a run folder again",
        "sweep": "many models on many meshes, one table",
        "remedy": "code changes that remove bytes or time, each compiled",
    },
    "programs and profiles": {
        "hlo": "the collectives of any compiled HLO text",
        "trace": "a profile of TPUs or CPUs: times, overlap, waiting",
        "metric": "one number of any trace, by CCL-Bench's names",
        "history": "what each compiler pass did to one collective",
        "diff": "two runs or two programs held against each other",
    },
    "networks and energy": {
        "what-if": "a run on other links, machines or algorithms",
        "cost": "one collective, or messages, on any network",
        "replay": "a Chakra trace; a run by ASTRA-sim's rules",
        "energy": "modelled joules; other frequencies",
    },
    "data": {
        "export": "a run for CCL-Bench or ASTRA-sim",
        "query": "SQL over many runs",
        "calibrate": "constants of a device from measured windows",
        "teach": "which collectives each sharding produces",
    },
}
COMMANDS = {name: does for group in GROUPS.values() for name, does in group.items()}
SIMULATE = ("what-if", "cost", "replay")
"""Forms of `compare.simulate`, by whose name their parsers ask."""
PACKAGES = (NAME, "libtpu", "jaxlib", "jax", "flax", "torch", "torch_xla")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the subcommand.  2, and one line: there is none of that name."""
    words = list(sys.argv[1:] if argv is None else argv)
    if "_ARGCOMPLETE" in os.environ:
        from compare.cli.completion import complete

        words = complete(COMMANDS)
    if not words or words[0] in ("-h", "--help"):
        print(describe())
        return 0
    if words[0] == "--version":
        print("\n".join(list_versions()))
        return 0
    name, *rest = words
    if name not in COMMANDS and name.startswith("-"):
        complain(f"error: options come after the command: {NAME} COMMAND {quote(name)}; see {NAME} --help")
        return REFUSED
    if name not in COMMANDS:
        from difflib import get_close_matches

        near = SIMULATE if name == "simulate" else get_close_matches(name, COMMANDS, n=1)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; see {NAME} --help"
        complain(f"error: {NAME} has no command {quote(name)}{hint}")
        return REFUSED
    command: Callable[[Sequence[str]], int] = import_module(f"compare.cli.{name.replace('-', '_')}").main
    with command_line.called_as(NAME, {"simulate" if name in SIMULATE else name: name}):
        return command(rest)


def describe() -> str:
    """The help: every command in its group, one line each."""
    wide = max(map(len, COMMANDS))
    lines = [f"usage: {NAME} COMMAND [options]; {NAME} COMMAND --help says its options", ""]
    for title, group in GROUPS.items():
        lines += [f"{title}:", *(f"  {name:<{wide}}  {does}" for name, does in group.items()), ""]
    return "\n".join([*lines, f"example: {NAME} run --mesh tp4pp2", f"{NAME} --version: what is installed"])


def list_versions() -> list[str]:
    """`wirediff 0.1.0`, and those of the compiler and the frameworks, or that they are not installed."""
    from meshes.process.packages import installed_version

    versions = {name: installed_version(name) for name in PACKAGES}
    return [f"{name} {version}" if version else f"{name}: not installed" for name, version in versions.items()]


def script() -> None:
    """The console script."""
    run_command(main)
