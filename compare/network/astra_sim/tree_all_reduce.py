"""The double binary tree as ASTRA-sim simulates it: a chunk goes up one tree and down again, whole.

Source: `DoubleBinaryTreeAllReduce.cc`.
"""

from compare.network.algorithms import Branch
from compare.network.astra_sim.exchange import Endpoint


class TreeAllReduce:
    """One rank in one tree, for any collective: ASTRA-sim simulates them all as an all-reduce."""

    def __init__(self, branch: Branch, num_bytes: int, endpoint: Endpoint) -> None:
        self._branch, self._num_bytes, self._endpoint = branch, num_bytes, endpoint
        self._to_reduce = len(branch.children)

    def start(self) -> None:
        if self._branch.children:
            for child in self._branch.children:
                self._endpoint.receive(child, self._num_bytes, self._reduce)
        else:
            self._endpoint.wait(self._go_up)

    def _reduce(self) -> None:
        self._endpoint.reduce(self._num_bytes, self._reduced)

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
        self._endpoint.send(self._branch.parent, self._num_bytes)
        self._endpoint.receive(self._branch.parent, self._num_bytes, self._come_down)

    def _come_down(self) -> None:
        if self._branch.children:
            self._endpoint.reduce(self._num_bytes, self._go_down)  # as dear as a reduction
        else:
            self._endpoint.wait(self._endpoint.leave)

    def _go_down(self) -> None:
        for child in self._branch.children:
            self._endpoint.send(child, self._num_bytes)
        self._endpoint.leave()
