"""Messages between pairs of ranks, all sent at once, as the engine simulates those of a program."""

from collections.abc import Sequence
from math import nan

import numpy as np

from compare.network.engine.graph_layout import Plan
from compare.network.engine.simulate import simulate_graph
from compare.network.graph.graph import PERMUTE, RECEIVE, SEND, Graph, NodeTableBuilder, Transfer
from compare.network.machines.collective import Message, check_messages
from compare.network.machines.machine import Machine


def time_messages(machine: Machine, messages: Sequence[Message]) -> list[float]:
    """When each arrives, in ns.  Raises `TimingError` for messages that the machine cannot have."""
    check_messages(messages, machine)
    simulated = simulate_graph(Plan.of(_build_graph(machine.num_ranks, messages), machine), machine)
    arrivals = [nan] * len(messages)
    for target in dict.fromkeys(message.target for message in messages):
        index = int(simulated.plan.classes.of[target])
        table = simulated.plan.graph.table(target)
        for node in np.flatnonzero(table.ops == RECEIVE).tolist():
            arrivals[int(table.transfers[node])] = float(simulated.ends[index][node])
    return arrivals


def _build_graph(num_ranks: int, messages: Sequence[Message]) -> Graph:
    """A transfer for each message; ranks without one share an empty table."""
    builders: dict[int, NodeTableBuilder] = {}
    transfers = []
    for key, message in enumerate(messages):
        groups = ((message.source, message.target),)
        transfers.append(Transfer(key=key, kind=PERMUTE, num_bytes=message.num_bytes, groups=groups))
        for rank, op in ((message.source, SEND), (message.target, RECEIVE)):
            nodes = builders.setdefault(rank, NodeTableBuilder())
            nodes.add(op, f"message.{key}", (), transfer=key, num_bytes=message.num_bytes)
    table_of = np.zeros(num_ranks, np.int64)
    for index, rank in enumerate(builders, start=1):
        table_of[rank] = index
    tables = (NodeTableBuilder().build(), *(builder.build() for builder in builders.values()))
    return Graph(name="messages", num_ranks=num_ranks, tables=tables, table_of=table_of, transfers=tuple(transfers))
