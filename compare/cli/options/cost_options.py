"""The options of one collective, or of messages: `wirediff cost`, and `compare.simulate` without a folder."""

from compare.cli.options.chip_option import add_chip
from compare.cli.options.machine_options import add_machine, add_rules
from compare.cli.options.numbers import digits, number
from compare.network.machines.kinds import KINDS, LOCAL_BW_AWARE, MULTI
from meshes.process.command_line import Parser, command_parser, is_behind_front_door, whole_number

_bytes = number(digits, lambda value: value <= 2**62, "{} is no number of bytes; write one like 1048576")
_whole = number(digits, lambda value: value < 10**9, "{} is no whole number from 0; write one like 10")
_positive = number(float, lambda value: 0 < value <= 1e15, "{} is no bandwidth; write GB/s like 2765")
_USAGE = """python -m compare.simulate --collective KIND --bytes N (--machine FILE|NAME | --dims …) [options below]
       python -m compare.simulate --pairs A-B,C-D:BYTES (--machine FILE|NAME | --dims …) [options below]
       python -m compare.simulate RUN [--machine FILE|NAME] [--scale WORD=X,…] [--set KEY=VALUE] [--algorithm KIND=WORD]
           [--repeat N] [--sweep …] [--best] [--out DIR] [--into]
           the programs of a run folder; all options: python -m compare.simulate RUN --help
       python -m compare.simulate FOLDER [--machine FILE|NAME] [--as astra-sim] [--out FILE.json.gz]
           a Chakra trace, or a run by ASTRA-sim's rules; all options:
           python -m compare.simulate FOLDER --as astra-sim --help
"""


def cost_parser() -> Parser:
    parser = command_parser(
        "compare.simulate",
        "Compute what one collective, or messages between ranks, cost on a machine of rings, switches and full meshes: "
        "in ns, or in ASTRA-sim's cycles.",
        example="--collective all-reduce --bytes 1048576 --dims ring:4,ring:2 --bandwidth 90,90 --latency 1000,1000 "
        "--as astra-sim",
    )
    if not is_behind_front_door():
        parser.usage = _USAGE
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--collective", choices=KINDS, help="over all ranks, or over --group")
    what.add_argument(
        "--pairs",
        metavar="A-B,C-D:BYTES",
        help="messages, sent at once, each sender-receiver:bytes; one without :bytes has --bytes, or without that "
        "the bytes of the message behind it",
    )
    parser.add_argument(
        "--bytes", metavar="N", type=_bytes, help="a rank's input; of an all-gather its shard (ASTRA-sim's comm_size)"
    )
    parser.add_argument("--group", metavar="R,R,…", help="the ranks of the collective, in the order of their ring")
    machine = parser.add_argument_group("machine")
    add_machine(machine)
    machine.add_argument("--dims", metavar="KIND:N,…", help="the fastest first: ring, line, switch, fully-connected")
    machine.add_argument(
        "--bandwidth", metavar="GB/S,…", help="of a link, one for each dim; GB are 1e9 bytes, as astra-sim 2^30"
    )
    machine.add_argument("--latency", metavar="NS,…", help="of a hop, one for each dim")
    machine.add_argument(
        "--algorithm",
        metavar="WORD,…",
        help="one for each dim: ring, two-way-ring, direct, direct:3 (with a window), halving-doubling, "
        "double-binary-tree, custom:FILE.toml (one's own); last one-ring, one-direct, one-halving-doubling: over all "
        "ranks (default: ring)",
    )
    multi = f"how an all-reduce crosses dims (default: {LOCAL_BW_AWARE})"
    machine.add_argument("--multi", "--collective-optimization", choices=MULTI, help=multi)
    machine.add_argument(
        "--chunks",
        "--preferred-dataset-splits",
        metavar="K",
        type=whole_number,
        help="pieces of the collective (default: 1)",
    )
    machine.add_argument(
        "--active",
        "--active-chunks-per-dimension",
        metavar="C",
        type=whole_number,
        help="pieces under way in a dim (default: 1)",
    )
    machine.add_argument("--queues", metavar="Q", type=whole_number, help="of each dim (default: 1)")
    machine.add_argument(
        "--memory",
        "--local-mem-bw",
        metavar="GB/S",
        type=_positive,
        help="memory bandwidth of reductions, 1e9 bytes a second (default: they cost nothing, as astra-sim 2765)",
    )
    machine.add_argument(
        "--endpoint",
        "--endpoint-delay",
        metavar="NS",
        type=_whole,
        help="delay before a message is sent, and again once it has come (default: 0, as astra-sim 10)",
    )
    add_chip(parser, "; for the chips that --machine names")
    add_rules(parser.add_argument_group("rules"))
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    return parser
