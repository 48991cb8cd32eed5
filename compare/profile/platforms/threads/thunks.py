"""When the operations of XLA:CPU end.

An operation's event covers its call.  If the call leaves work to other threads, the operation ends later: then `end:
NAME`, with the context id that the operation created, is on the thread that completes it.  But the continuation of the
program is called before that event, on the same thread: so the operation ends where the first operation after it begins
in the task that has its end.  It resumes when that task begins: before, it waited for the thread, which on a machine
with few cores can be most of its time.  It ends before its device has completed its run.
(openxla/xla, xla/backends/cpu/runtime/thunk_executor.cc, `TracedExecute` and `ResumeExecuteSequential`;
tsl::AsyncValue calls the last waiter first.)
"""

from dataclasses import dataclass

import numpy as np

from compare.profile.platforms.threads.thread_timeline import LAST, NONE, Spans, Threads
from compare.timeline.arrays import Ints

_END = r"end: .*"


@dataclass(frozen=True, slots=True)
class Ends:
    at_ps: Ints
    """When each operation ends."""
    resumed_ps: Ints
    """When another thread resumed it; for an operation that ends with its call, that end."""
    unseen: int
    """Number of operations without an end in the profile: they end with their call."""


def find_ends(threads: Threads, ops: Ints, completed_ps: Ints) -> Ends:
    """When each of these operations ends, in order.  completed_ps: when their runs completed."""
    called = threads.time(threads.ends[ops])
    given = threads.given_context[ops]
    marks = threads.events_named(_END)
    order = np.argsort(given, kind="stable")
    index = np.searchsorted(given[order], threads.own_context[marks])
    known = (np.append(given[order], LAST)[index] == threads.own_context[marks]) & (threads.own_context[marks] != NONE)
    marks, op = marks[known], order[index[known]]
    unseen = ops.size - np.unique(op).size
    is_later = threads.time(threads.begins[marks]) > called[op]
    finished, resumed = called.copy(), called.copy()
    op, marks = op[is_later], marks[is_later]
    spans = Spans.of(threads.regions.begins, threads.regions.ends)
    finished[op] = np.minimum(_completed(threads, spans, ops, op, marks), completed_ps[op])
    finished = np.maximum(finished, called)
    region = spans.innermost(threads.begins[marks])
    taken_up = threads.time(np.append(spans.begins, 0)[region])
    resumed[op] = np.where(region >= 0, np.clip(taken_up, called[op], finished[op]), called[op])
    return Ends(finished, resumed, unseen)


def _completed(threads: Threads, spans: Spans, ops: Ints, op: Ints, mark: Ints) -> Ints:
    """Completion times of operations whose `end:` event is after their call."""
    begins = threads.begins[ops]
    region, call_region = spans.innermost(threads.begins[mark]), spans.innermost(begins[op])
    thread = threads.thread[mark]
    called = threads.time(begins[op]) + threads.shift(thread)  # as a position on the completing thread
    since = np.maximum(np.append(spans.begins, 0)[region], called)
    following = np.append(begins, LAST)[np.searchsorted(begins, since, side="right")]
    continues = (region >= 0) & (region != call_region) & (following < threads.begins[mark])
    return threads.time(np.where(continues, following, threads.begins[mark]))
