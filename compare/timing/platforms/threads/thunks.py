"""When the operations of XLA:CPU end.

An operation's event covers its call.  If the call leaves work to other threads, the operation ends later: then `end:
NAME`, which bears the context that the operation made, is on the thread that has completed it.  But what continues the
program is called before that event, on the same thread: so the operation ends where, in the piece of work that bears
its end, the first operation begins after it.  And it is at work again since that piece began: before, it waited for the
thread, which on a machine of few cores can take most of its time.  It ends before its device has completed its run.
(openxla/xla, xla/backends/cpu/runtime/thunk_executor.cc, `TracedExecute` and `ResumeExecuteSequential`;
tsl::AsyncValue calls the last waiter first.)
"""

from dataclasses import dataclass

import numpy as np

from compare.timing.arrays import Ints
from compare.timing.platforms.threads.thread_timeline import LAST, NONE, Spans, Threads

_END = r"end: .*"


@dataclass(frozen=True, slots=True)
class Ends:
    at_ps: Ints
    """When each operation ends."""
    resumed_ps: Ints
    """When another thread took it up that completed it; of one that ends with its call, that end."""
    unseen: int
    """How many have no end in the profile: of these it is the end of their call."""


def find_ends(threads: Threads, ops: Ints, completed_ps: Ints) -> Ends:
    """When each of these operations, in order, ends.  completed_ps: when their runs had."""
    called = threads.time(threads.ends[ops])
    made = threads.given_context[ops]
    marks = threads.events_named(_END)
    order = np.argsort(made, kind="stable")
    place = np.searchsorted(made[order], threads.own_context[marks])
    known = (np.append(made[order], LAST)[place] == threads.own_context[marks]) & (threads.own_context[marks] != NONE)
    marks, op = marks[known], order[place[known]]
    unseen = ops.size - np.unique(op).size
    after = threads.time(threads.begins[marks]) > called[op]
    at, resumed = called.copy(), called.copy()
    op, marks = op[after], marks[after]
    spans = Spans.of(threads.regions.begins, threads.regions.ends)
    at[op] = np.minimum(_completed(threads, spans, ops, op, marks), completed_ps[op])
    at = np.maximum(at, called)
    region = spans.innermost(threads.begins[marks])
    taken_up = threads.time(np.append(spans.begins, 0)[region])
    resumed[op] = np.where(region >= 0, np.clip(taken_up, called[op], at[op]), called[op])
    return Ends(at, resumed, unseen)


def _completed(threads: Threads, spans: Spans, ops: Ints, op: Ints, mark: Ints) -> Ints:
    """When operations were completed whose ends are marked after their calls."""
    begins = threads.begins[ops]
    region, own = spans.innermost(threads.begins[mark]), spans.innermost(begins[op])
    thread = threads.thread[mark]
    called = threads.time(begins[op]) + threads.shift(thread)  # on the axis, but of the thread that completed it
    since = np.maximum(np.append(spans.begins, 0)[region], called)
    following = np.append(begins, LAST)[np.searchsorted(begins, since, side="right")]
    continues = (region >= 0) & (region != own) & (following < threads.begins[mark])
    return threads.time(np.where(continues, following, threads.begins[mark]))
