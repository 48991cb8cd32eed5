"""Plays a graph on a machine, by the machine's kind of links."""

from compare.network.engine.game import Game, Played
from compare.network.engine.graph_layout import Plan
from compare.network.engine.messages import MessageGame
from compare.network.machines.machine import SHARED, Machine


def play(plan: Plan, machine: Machine, *, eager: bool = False, scale_compute: float = 1.0) -> Played:
    """machine: of the plan's shape, with any rates.  eager: a message leaves before its receiver has come.

    Raises `GraphError` for a deadlock.
    """
    game = Game if machine.links == SHARED else MessageGame
    return game(plan, machine, eager=eager, scale_compute=scale_compute).play()
