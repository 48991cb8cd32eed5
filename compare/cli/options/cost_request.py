"""What `wirediff cost` is asked: which machine, which collective or messages, by whose rules."""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from compare.cli.options.machine_options import is_as_astra_sim
from compare.network.machines.collective import Collective, Message
from compare.network.machines.kinds import RING
from compare.network.machines.machine import Algorithm, Algorithms, Dim, Machine
from compare.network.machines.machine_file import find_machine
from compare.network.machines.words import choose_algorithm, parse_kind
from compare.simulate.print_answer import note_rings
from compare.simulate.request import Request
from compare.timeline.errors import TimingError, name_place
from meshes.devices.chip import Chip
from meshes.devices.generations import generation
from meshes.devices.topology import Topology
from meshes.process.command_line import Parser
from meshes.process.documents import read_toml
from meshes.process.one_line import quote

Value = TypeVar("Value")
_MOST_OF_A_RANK = 256
"""Messages that it sends or receives at once: each that begins or ends gives all on its links another rate."""
_MEMORY = 2765.0
"""Of the runs in docs/network.md, as astra-sim: there is no default there."""


def read_request(options: argparse.Namespace, parser: Parser) -> Request:
    """Ends the process in one line where the request is wrong."""
    try:
        return _read(options, parser)
    except TimingError as error:
        parser.error(str(error))


def _read(options: argparse.Namespace, parser: Parser) -> Request:
    as_astra_sim = is_as_astra_sim(options, parser)
    if not options.collective and not options.pairs:
        parser.error(
            "nothing to simulate; write --collective or --pairs; a run folder is for what-if and replay, a Chakra "
            "trace for replay"
        )
    messages = _messages(options.pairs.split(","), options.bytes) if options.pairs else ()
    if options.bytes is None and options.collective:
        parser.error("--bytes is not given; write --bytes 1048576")
    if options.group and not options.collective:
        parser.error("--group belongs to --collective")
    if options.algorithm and not options.collective:
        parser.error("--algorithm belongs to --collective: messages are sent as they are")
    machine = _change(_machine(options, parser, as_astra_sim=as_astra_sim), options, as_astra_sim=as_astra_sim)
    group = tuple(_list(options.group, "--group", _rank)) if options.group else None
    kind = options.collective
    return Request(
        machine=machine,
        collective=Collective(kind=kind, num_bytes=options.bytes, group=group) if kind else None,
        messages=messages,
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
