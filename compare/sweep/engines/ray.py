"""The engine for a Ray cluster: each case is a task on a node, which sends its run folder back.

Nodes need Python and the frameworks, but no shared disk: this project's sources are sent to them.
"""

import io
import logging
import os
import shutil
import socket
import tarfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Protocol
from uuid import uuid4

from compare.run.arms import ARMS
from compare.run.errors import WorkError
from compare.run.tasks import PREFIXES, ROOT
from compare.sweep.engines import local
from compare.sweep.engines.local import CaseOutcome, CaseTask, Notify
from meshes.process import atomic_files
from meshes.process.one_line import one_line

TICK_S = 0.2
ANSWER_S = 10.0
"""Seconds that a cluster has to take a connection."""
_ERROR_LENGTH = 400


def run_cases(
    tasks: Sequence[CaseTask], *, at_once: int | None, scratch: Path, notify: Notify
) -> Generator[tuple[CaseTask, CaseOutcome], None, None]:
    """Run these tasks on the cluster that `RAY_ADDRESS` names, or on a local one, which is started if need be.

    A case takes one CPU of a node and compiles one program at a time; Ray retries the cases of a node that dies.
    """
    with _cluster() as ray:
        from ray.util.queue import Queue

        queue = Queue(actor_options={"num_cpus": 0})
        run = ray.remote(num_cpus=1)(_run)
        at_once = at_once or len(tasks)  # the cluster queues tasks itself, and may scale up for them
        waiting, running = list(tasks), dict[object, CaseTask]()
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    task = waiting.pop(0)
                    running[run.remote(task, queue)] = task
                    notify(task.name, "submitted", 0)
                ready, _ = ray.wait(list(running), timeout=TICK_S)
                for words in _heard(queue):
                    notify(*words)
                for reference in ready:
                    yield running.pop(reference), _fetched(ray, reference, scratch / uuid4().hex)
        finally:
            for left in running:
                ray.cancel(left, force=True)


class _Queue(Protocol):
    """What is used of `ray.util.queue.Queue`."""

    def put(self, item: tuple[str, str, float], /) -> None: ...

    def qsize(self) -> int: ...

    def get_nowait_batch(self, num_items: int, /) -> list[tuple[str, str, float]]: ...


def _run(task: CaseTask, queue: _Queue) -> tuple[CaseOutcome, bytes]:
    """On a node: run one case, and pack its run folder."""
    with atomic_files.temporary() as scratch:
        notify = _send_changes(queue)
        notify(task.name, f"start on node {_node()}", 0)
        ended = local.run_cases([task], at_once=1, scratch=scratch, notify=notify, programs=1)
        (_, outcome), *_ = list(ended)
        packed = io.BytesIO()
        if outcome.run:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                archive.add(outcome.run, arcname="")
        return replace(outcome, run=None), packed.getvalue()


def _node() -> str:
    """The first letters of this node's id, as `ray list nodes` has it."""
    import ray

    return str(ray.get_runtime_context().get_node_id())[:8]


def _send_changes(queue: _Queue) -> Notify:
    """Sends changes of stage to the queue; a failure to send is ignored."""
    last = ""

    def notify(name: str, stage: str, seconds: float) -> None:
        nonlocal last
        if stage != last:
            last = stage
            with suppress(Exception):
                queue.put((name, stage, seconds))

    return notify


def _heard(queue: _Queue) -> list[tuple[str, str, float]]:
    """The messages that have arrived; none if the queue's node has died, which loses progress messages only."""
    try:
        return queue.get_nowait_batch(queue.qsize())
    except Exception:
        return []


def _fetched(ray: ModuleType, reference: object, out: Path) -> CaseOutcome:
    """The outcome of a task, its run folder unpacked at `out`."""
    try:
        result: tuple[CaseOutcome, bytes] = ray.get(reference)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None) or error
        return CaseOutcome(status="crashed", error=one_line(f"on the cluster: {cause}", most=_ERROR_LENGTH))
    outcome, packed = result
    if not packed:
        return outcome
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(out, filter="data")
    return replace(outcome, run=out)


@contextmanager
def _cluster() -> Iterator[ModuleType]:
    """Ray, connected; and left again.  Raises `WorkError` where it is not installed, or no cluster answers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise WorkError("ray is not installed; get it with pip install -e '.[ray]'") from None
    _check_answers(os.environ.get("RAY_ADDRESS", ""))
    with atomic_files.temporary() as folder:
        _copy_sources(folder)
        environment = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
        try:
            ray.init(
                runtime_env={"working_dir": folder, "env_vars": environment},
                log_to_driver=False,
                logging_level=logging.ERROR,
                include_dashboard=False,
            )
        except (OSError, RuntimeError, ValueError) as error:
            words = " ".join(str(error).split())[:_ERROR_LENGTH]
            raise WorkError(
                f"no Ray cluster could be joined or started: {words}; set RAY_ADDRESS to a running cluster"
            ) from None
        try:
            yield ray
        finally:
            ray.shutdown()


def _check_answers(address: str) -> None:
    """Raise `WorkError` if nothing listens there: Ray itself would wait for minutes and ignore an interrupt."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon:
        return  # no address, or a keyword of Ray's like `auto`
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_S).close()
    except (OSError, ValueError) as error:
        raise WorkError(f"no Ray cluster answers at RAY_ADDRESS={address} ({error}); start one, or unset it") from None


def _copy_sources(folder: Path) -> None:
    """Copy the packages that run a case, without their byte code."""
    for room in ("meshes", "compare", *(arm.module for arm in ARMS.values())):
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
