"""What is asked of `compare.simulate`: a machine, and a collective or messages on it."""

from dataclasses import dataclass

from compare.network.machines.collective import Collective, Message
from compare.network.machines.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A machine, and either a collective or messages on it."""

    machine: Machine
    collective: Collective | None
    messages: tuple[Message, ...]
    as_astra_sim: bool
    aware: bool
    json: bool
