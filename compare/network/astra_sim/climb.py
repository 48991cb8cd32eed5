"""The double binary tree as ASTRA-sim plays it: a chunk goes up one tree and down again, whole.

Source: `DoubleBinaryTreeAllReduce.cc`.
"""

from compare.network.algorithms import Branch
from compare.network.astra_sim.clock import Action, Tag
from compare.network.astra_sim.exchange import Costs, Mail, Timer


class Climb:
    """One rank in one tree, for any collective: ASTRA-sim plays them all as an all-reduce."""

    def __init__(
        self,
        branch: Branch,
        rank: int,
        num_bytes: int,
        *,
        tag: Tag,
        mail: Mail,
        timer: Timer,
        costs: Costs,
        leave: Action,
    ) -> None:
        self._branch, self._rank, self._num_bytes = branch, rank, num_bytes
        self._tag, self._mail, self._timer, self._costs, self._leave = tag, mail, timer, costs, leave
        self._to_reduce = len(branch.children)

    def start(self) -> None:
        if self._branch.children:
            for child in self._branch.children:
                self._receive(child, self._reduce)
        else:
            self._timer.after(self._costs.endpoint, self._go_up)

    def _reduce(self) -> None:
        self._process(self._reduced)

    def _reduced(self) -> None:
        self._to_reduce -= 1
        if self._to_reduce:
            return
        if self._branch.parent is None:
            self._go_down()
        else:
            self._go_up()

    def _go_up(self) -> None:
        if self._branch.parent is None:
            raise AssertionError("a root has children")
        self._send(self._branch.parent)
        self._receive(self._branch.parent, self._come_down)

    def _come_down(self) -> None:
        if self._branch.children:
            self._process(self._go_down)  # as dear as a reduction
        else:
            self._timer.after(self._costs.endpoint, self._leave)

    def _go_down(self) -> None:
        for child in self._branch.children:
            self._send(child)
        self._leave()

    def _process(self, done: Action) -> None:
        ticks = self._costs.reduction(self._num_bytes)
        self._timer.after(self._costs.endpoint, lambda: self._timer.after(ticks, done))

    def _send(self, target: int) -> None:
        self._mail.send(self._tag, self._rank, target, self._num_bytes)

    def _receive(self, source: int, handler: Action) -> None:
        self._mail.receive(self._tag, source, self._rank, self._num_bytes, handler)
