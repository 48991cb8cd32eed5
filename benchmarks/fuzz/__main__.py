"""`python -m benchmarks.fuzz`: a million damaged and hostile inputs to all readers, and the outcomes.

Three things must not happen: a traceback or a hang; a lost or changed row where no collective was damaged; a refusal
that is not one clean line.  Each input is derived from a seed, its reader's name and its number: `--reader` and
`--from` reproduce it.
"""

import argparse
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from benchmarks.fuzz.readers import READERS, Reader
from benchmarks.fuzz.run import Outcomes, chunk, limit

CHUNK, SAID_EVERY = 500, 50_000
_SPAWN = multiprocessing.get_context("spawn")

Job = tuple[int, range, int]
"""Of `chunk`: the reader's place, the inputs' numbers, the seed."""


def main() -> int:
    """Exit 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=1_000_000, help="over all readers (default: 1000000)")
    parser.add_argument("--seed", type=int, default=0, help="of all inputs (default: 0)")
    parser.add_argument("--reader", default="", help="only readers whose name has these words")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the number of each reader's first input")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    options = parser.parse_args()
    chosen = [reader for reader in READERS if options.reader in reader.name]
    parts = sum(reader.share for reader in chosen)
    by_reader = {reader.name: Outcomes() for reader in chosen}
    jobs = _interleave(
        [
            [
                (READERS.index(reader), range(at, min(at + CHUNK, options.first + count)), options.seed)
                for at in range(options.first, options.first + count, CHUNK)
            ]
            for reader in chosen
            for count in [-(-options.inputs * reader.share // parts)]
        ]
    )
    seen, tried = set[tuple[str, str]](), 0
    try:
        for (number, numbers, _), outcomes in run_chunks(jobs, at_once=options.jobs):
            name = READERS[number].name
            by_reader[name].add(outcomes or _died(numbers))
            before, tried = tried, tried + len(numbers)
            if before // SAID_EVERY < tried // SAID_EVERY:
                print(f"{tried:,} inputs", file=sys.stderr, flush=True)
            for what, where in by_reader[name].findings.items():
                if (name, what) not in seen:
                    print(f"{name}, {where}: {what}", file=sys.stderr, flush=True)
                    seen.add((name, what))
    except KeyboardInterrupt:
        print("interrupted; so far:", file=sys.stderr)
    print(_table(chosen, by_reader))
    bad = [
        (name, what, where) for name, outcomes in by_reader.items() for what, where in sorted(outcomes.findings.items())
    ]
    for outcomes in by_reader.values():
        for words, count in outcomes.notes.most_common():
            print(f"{count:>10,} {words}")
    for name, what, where in bad:
        print(f"{name}, {where}: {what}")
    return 1 if bad else 0


def _interleave(lists: Sequence[Sequence[Job]]) -> list[Job]:
    """All lists at the same pace, so that a run that is interrupted has tried its share of each reader."""
    placed = [(at / len(jobs), job) for jobs in lists for at, job in enumerate(jobs)]
    return [job for _, job in sorted(placed, key=lambda pair: pair[0])]


def run_chunks(jobs: Sequence[Job], *, at_once: int) -> Iterator[tuple[Job, Outcomes | None]]:
    """Outcomes of each job as it ends; None of one whose process died.

    A process that dies takes the pool with it: the jobs that were under way are tried again, each alone.
    """
    left = list(jobs)
    while left:
        broken = []
        with ProcessPoolExecutor(at_once, mp_context=_SPAWN, initializer=limit) as pool:
            waiting = {pool.submit(chunk, *job): job for job in left}
            for done in as_completed(waiting):
                try:
                    yield waiting[done], done.result()
                except BrokenProcessPool:
                    broken.append(waiting[done])
        left = [job for job in left if job in broken]
        under_way, left = left[:at_once], left[at_once:]
        for job in under_way:
            with ProcessPoolExecutor(1, mp_context=_SPAWN, initializer=limit) as pool:
                try:
                    yield job, pool.submit(chunk, *job).result()
                except BrokenProcessPool:
                    yield job, None


def _died(numbers: range) -> Outcomes:
    finding = {"hang: the process died": f"one of the inputs {numbers.start} to {numbers.stop - 1}"}
    return Outcomes(outcomes=Counter(hang=1), findings=finding)


def _table(chosen: list[Reader], by_reader: dict[str, Outcomes]) -> str:
    words = ("inputs", "read", "refused", "traceback", "hang", "wrong", "refusal", "seconds")
    rows = [f"{'reader':34}" + "".join(f"{word:>10}" for word in words)]
    total = Counter[str]()
    for reader in chosen:
        outcomes = by_reader[reader.name]
        total.update(outcomes.outcomes)
        rows.append(_row(reader.name, outcomes.outcomes, outcomes.seconds))
    return "\n".join([*rows, _row("all", total, sum(outcomes.seconds for outcomes in by_reader.values()))])


def _row(name: str, counter: Counter[str], seconds: float) -> str:
    counts = [
        counter.total(),
        *(counter[word] for word in ("read", "refused", "traceback", "hang", "wrong", "refusal")),
    ]
    return f"{name:34}" + "".join(f"{count:>10,}" for count in counts) + f"{seconds:>10.0f}"


if __name__ == "__main__":
    sys.exit(main())
