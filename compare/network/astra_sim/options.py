"""How ASTRA-sim simulates a graph, beside its machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from compare.network.astra_sim.custom import CustomFiles
from compare.network.astra_sim.remote import RemoteMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Of its command line, its system file and its memory file."""

    aware: bool = False
    """Whether links are shared: the other backend."""
    rendezvous: bool = False
    """Whether a sender waits for 8,192 bytes from its receiver."""
    replays: bool = False
    """Whether all nodes last as their file says, communication too (`replay-only`)."""
    remote: RemoteMemory | None = None
    custom: Mapping[str, CustomFiles] = field(default_factory=dict)
    """By the kind of collective, those that run by files of messages."""
