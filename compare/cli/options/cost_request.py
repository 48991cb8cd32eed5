"""The options of `compare.simulate`: which machine, which collective or messages, by whose rules."""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from compare.cli.options.chip_option import add_chip
from compare.cli.options.machine_options import add_machine, add_rules, is_as_astra_sim
from compare.cli.options.numbers import digits, number
from compare.network.machines.collective import Collective, Message
from compare.network.machines.machine import KINDS, LOCAL_BW_AWARE, MULTI, RING, Algorithm, Algorithms, Dim, Machine
from compare.network.machines.machine_file import find_machine
from compare.network.machines.words import choose_algorithm, parse_kind
from compare.simulate.print_answer import note_rings
from compare.simulate.request import Request
from compare.timeline.errors import TimingError, name_place
from meshes.devices.chip import Chip
from meshes.devices.generations import generation
from meshes.devices.topology import Topology
from meshes.process.command_line import Parser, command_parser, is_behind_front_door, whole_number
from meshes.process.documents import read_toml
from meshes.process.one_line import quote

Value = TypeVar("Value")
_bytes = number(digits, lambda value: value <= 2**62, "{} is no number of bytes; write one like 1048576")
_whole = number(digits, lambda value: value < 10**9, "{} is no whole number from 0; write one like 10")
_positive = number(float, lambda value: 0 < value <= 1e15, "{} is no bandwidth; write GB/s like 2765")
_MOST_OF_A_RANK = 256
"""Messages that it sends or receives at once: each that begins or ends gives all on its links another rate."""
_MEMORY = 2765.0
"""Of the runs in docs/network.md, as astra-sim: there is no default there."""
_USAGE = """python -m compare.simulate --collective KIND --bytes N (--machine FILE|NAME | --dims …) [options below]
       python -m compare.simulate --pairs A-B,C-D:BYTES (--machine FILE|NAME | --dims …) [options below]
       python -m compare.simulate RUN [--machine FILE|NAME] [--scale WORD=X,…] [--set KEY=VALUE] [--algorithm KIND=WORD]
           [--repeat N] [--sweep …] [--best] [--out DIR] [--into]
           the programs of a run folder; all options: python -m compare.simulate RUN --help
       python -m compare.simulate FOLDER [--machine FILE|NAME] [--as astra-sim] [--out FILE.json.gz]
           a Chakra trace, or a run by ASTRA-sim's rules; all options:
           python -m compare.simulate FOLDER --as astra-sim --help
"""


def parse_request(argv: Sequence[str] | None) -> Request:
    """Ends the process in one line where the request is wrong."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        return _read(options, parser)
    except TimingError as error:
        parser.error(str(error))


def _parser() -> Parser:
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
        help="messages, sent at once; one without a number of bytes has --bytes, or else the number of the next",
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
        help="delay before a rank acts on a message (default: 0, as astra-sim 10)",
    )
    add_chip(parser, "; for the chips that --machine names")
    add_rules(parser.add_argument_group("rules"))
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    return parser


def _read(options: argparse.Namespace, parser: Parser) -> Request:
    as_astra_sim = is_as_astra_sim(options, parser)
    if not options.collective and not options.pairs:
        parser.error(
            "nothing to simulate; write --collective or --pairs; a run folder is for what-if and replay, a Chakra "
            "trace for replay"
        )
    if options.bytes is None and (options.collective or ":" not in options.pairs):
        parser.error("--bytes is not given; write --bytes 1048576")
    if options.group and not options.collective:
        parser.error("--group belongs to --collective")
    machine = _change(_machine(options, parser, as_astra_sim=as_astra_sim), options, as_astra_sim=as_astra_sim)
    group = tuple(_list(options.group, "--group", _rank)) if options.group else None
    kind = options.collective
    return Request(
        machine=machine,
        collective=Collective(kind=kind, num_bytes=options.bytes, group=group) if kind else None,
        messages=_messages(options.pairs.split(","), options.bytes) if options.pairs else (),
        as_astra_sim=as_astra_sim,
        aware=options.aware,
        json=options.json,
    )


def _machine(options: argparse.Namespace, parser: Parser, *, as_astra_sim: bool) -> Machine:
    if (options.machine is None) == (options.dims is None):
        parser.error("one of --machine and --dims is given, like --dims ring:4,ring:2")
    if options.machine is not None:
        if options.bandwidth or options.latency:
            parser.error("--bandwidth and --latency belong to --dims")
        chip = _read_chip(options.chip, options.machine) if options.chip else None
        if as_astra_sim:
            note_rings(options.machine)
        return find_machine(options.machine, chip=chip, as_astra_sim=as_astra_sim)
    if options.chip:
        parser.error("--chip belongs to --machine, whose links it knows")
    if options.bandwidth is None or options.latency is None:
        parser.error("--dims has its --bandwidth and --latency, one number for each dim")
    kinds = [_dim(word) for word in options.dims.split(",")]
    rates = _list(options.bandwidth, "--bandwidth", _float)
    latencies = _list(options.latency, "--latency", _float)
    for name, values in (("--bandwidth", rates), ("--latency", latencies)):
        if len(values) != len(kinds):
            raise TimingError(f"{name} has {len(values)} numbers for {len(kinds)} dims")
    dims = []
    for index, ((kind, size), rate, latency) in enumerate(zip(kinds, rates, latencies, strict=True)):
        bytes_per_ns = rate * 2**30 / 1e9 if as_astra_sim else rate
        with name_place(f"dims.{index}."):
            dims.append(Dim(kind=kind, size=size, bytes_per_ns=bytes_per_ns, latency_ns=latency))
    return Machine(
        dims=tuple(dims),
        algorithms=Algorithms.alike((Algorithm(RING),) * len(dims)),
        memory_bytes_per_ns=_MEMORY if as_astra_sim else None,
    )


def _read_chip(path: Path, machine: str) -> Chip:
    """A user's chips, of the generation that the machine names: `v6e:2x4`, or `chip = "v6e"` in its file."""
    from compare.run.folder.chip import read_chip_of

    if not machine.endswith(".toml"):
        return read_chip_of(path, Topology.parse(machine).generation)
    name = read_toml(Path(machine)).get("chip")
    if not isinstance(name, str):
        raise TimingError(f'{machine}: --chip is of the chip that it names, and it names none; write chip = "v6e"')
    return read_chip_of(path, generation(name))


def _change(machine: Machine, options: argparse.Namespace, *, as_astra_sim: bool) -> Machine:
    """The machine with what the other options say."""
    changes = {
        "multi": options.multi,
        "chunks": options.chunks,
        "active_chunks": options.active,
        "queues": options.queues,
        "memory_bytes_per_ns": options.memory,
        "endpoint_ns": options.endpoint,
    }
    if options.algorithm is not None:
        words = options.algorithm.split(",")
        changes["algorithms"] = Algorithms.alike(tuple(choose_algorithm(word, machine) for word in words))
    return replace(machine, **{name: value for name, value in changes.items() if value is not None})


def _dim(word: str) -> tuple[str, int]:
    kind, colon, size = word.strip().partition(":")
    if not colon or not re.fullmatch(r"\d{1,9}", size, re.ASCII):
        raise TimingError(f"--dims: {quote(word)} is no dim; write kind:size, like ring:4")
    return parse_kind(kind), int(size)


def _messages(words: Sequence[str], num_bytes: int | None) -> tuple[Message, ...]:
    """A message without a number of bytes has `num_bytes`; where that is `None`, the number of the next one."""
    messages: list[Message] = []
    following: int | None = None
    for word in reversed(words):
        match = re.fullmatch(r"\s*(\d{1,9})-(\d{1,9})(?::(\d{1,18}))?\s*", word, re.ASCII)
        if not match:
            raise TimingError(f"--pairs: {quote(word)} is no message; write sender-receiver, like 0-4, or 0-4:1048576")
        if match[3] is not None:
            following = int(match[3])
        size = following if match[3] is not None or num_bytes is None else num_bytes
        if size is None:
            raise TimingError(f"--pairs: {quote(word)} has no bytes; write {word.strip()}:1048576, or --bytes 1048576")
        messages.append(Message(int(match[1]), int(match[2]), size))
    for ranks in (Counter(message.source for message in messages), Counter(message.target for message in messages)):
        rank, count = ranks.most_common(1)[0]
        if count > _MOST_OF_A_RANK:
            raise TimingError(
                f"--pairs: {count:,} messages of rank {rank} at once; at most {_MOST_OF_A_RANK} are simulated"
            )
    return tuple(reversed(messages))


def _list(text: str, name: str, read: Callable[[str], Value]) -> list[Value]:
    try:
        return [read(word) for word in text.split(",")]
    except ValueError as error:
        raise TimingError(f"{name}: {error}") from None


def _float(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{quote(word)} is no number") from None


def _rank(word: str) -> int:
    if not re.fullmatch(r"\s*\d{1,9}\s*", word, re.ASCII):
        raise ValueError(f"{quote(word)} is no rank")
    return int(word)
