"""What is asked of a machine: one collective, or messages between pairs of ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

from compare.network.machines.kinds import KINDS
from compare.network.machines.machine import Machine
from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective over all ranks of a machine, or over a group."""

    kind: str
    num_bytes: int
    """A rank's input: of an all-gather its shard, of the others the whole (ASTRA-sim's `comm_size`)."""
    group: tuple[int, ...] | None = None
    """Ranks, in the order of their ring; `None` for all."""
    dims: tuple[int, ...] | None = None
    """That it goes through, on all ranks; `None` for all of them.  Only ASTRA-sim's traces leave out any."""

    def check(self, machine: Machine) -> None:
        """Raises `TimingError` where the machine cannot have this collective."""
        if self.kind not in KINDS:
            raise TimingError(f"collective: unknown {self.kind!r}; known are {', '.join(KINDS)}")
        if self.num_bytes < 0:
            raise TimingError(f"bytes: 0 or more, not {self.num_bytes}")
        for rank in self.group or ():
            if not 0 <= rank < machine.num_ranks:
                raise TimingError(f"group: rank {rank} is not on this machine, which has {machine.num_ranks:,} ranks")
        if self.group is not None and (len(self.group) < 2 or len(set(self.group)) != len(self.group)):
            raise TimingError(f"group: two or more ranks, each once, not {','.join(map(str, self.group))}")


@dataclass(frozen=True, slots=True)
class Message:
    """One point-to-point message."""

    source: int
    target: int
    num_bytes: int

    def check(self, machine: Machine) -> None:
        """Raises `TimingError` where the machine cannot have this message."""
        for rank in (self.source, self.target):
            if not 0 <= rank < machine.num_ranks:
                raise TimingError(f"pairs: rank {rank} is not on this machine, which has {machine.num_ranks:,} ranks")
        if self.source == self.target:
            raise TimingError(f"pairs: rank {self.source} sends to itself")
        if self.num_bytes < 1:
            raise TimingError("bytes: a message has 1 or more")


def check_messages(messages: Sequence[Message], machine: Machine) -> None:
    """Raises `TimingError` where there are none, or the machine cannot have one."""
    if not messages:
        raise TimingError("pairs: no messages are given")
    for message in messages:
        message.check(machine)
