"""`python -m benchmarks.fuzz`: 100,000 damaged and hostile inputs to all readers, and the outcomes.

Three things must not happen: a traceback or a hang; a lost or changed row where no collective was damaged; a refusal
that is not one clean line.  Each input is derived from a seed, its reader's name and its number: `--reader` and
`--from` reproduce it.
"""

import argparse
import multiprocessing
import sys
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from benchmarks.fuzz.readers import READERS, Reader
from benchmarks.fuzz.run import Outcomes, chunk, limit

CHUNK = 500


def main() -> int:
    """Exit 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="over all readers (default: 100000)")
    parser.add_argument("--seed", type=int, default=0, help="of all inputs (default: 0)")
    parser.add_argument("--reader", default="", help="only readers whose name has these words")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the number of each reader's first input")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    options = parser.parse_args()
    chosen = [reader for reader in READERS if options.reader in reader.name]
    parts = sum(reader.share for reader in chosen)
    by_reader = {reader.name: Outcomes() for reader in chosen}
    context = multiprocessing.get_context("spawn")
    jobs = [
        (READERS.index(reader), range(at, min(at + CHUNK, options.first + count)), options.seed)
        for reader in chosen
        for count in [-(-options.inputs * reader.share // parts)]
        for at in range(options.first, options.first + count, CHUNK)
    ]
    with ProcessPoolExecutor(options.jobs, mp_context=context, initializer=limit) as pool:
        waiting = {pool.submit(chunk, *job): job for job in jobs}
        for done in as_completed(waiting):
            number, numbers, _ = waiting[done]
            _add(by_reader[READERS[number].name], done, numbers)
    print(_table(chosen, by_reader))
    bad = [
        (name, what, where) for name, outcomes in by_reader.items() for what, where in sorted(outcomes.findings.items())
    ]
    for name, what, where in bad:
        print(f"{name}, {where}: {what}")
    return 1 if bad else 0


def _add(total: Outcomes, done: Future[Outcomes], numbers: range) -> None:
    try:
        chunk_outcomes: Outcomes = done.result()
    except BrokenProcessPool:
        total.outcomes["hang"] += 1
        total.findings["hang: the process died"] = (
            f"one of the inputs {numbers.start} to {numbers.stop - 1}, or of others"
        )
        return
    total.outcomes.update(chunk_outcomes.outcomes)
    total.seconds += chunk_outcomes.seconds
    for what, where in chunk_outcomes.findings.items():
        total.findings.setdefault(what, where)


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
