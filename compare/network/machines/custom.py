"""Collectives written by a user, message by message: read, and held to what the collective has to do.

```toml
collective = "all-reduce"
ranks = 4
parts = 1                    # how the data is cut: see the table
sends = [                    # [from, to, part], or [from, to, part, "reduce"]: the receiver adds it to its own
    [1, 0, 0, "reduce"], [3, 2, 0, "reduce"], [2, 0, 0, "reduce"],
    [0, 2, 0], [0, 1, 0], [2, 3, 0],
]
```

| collective of n ranks | parts | rank r begins with | and ends with |
|---|---|---|---|
| all-reduce | of an input | all parts of its own | the sum of every part |
| reduce-scatter | of an input, a multiple of n | all parts of its own | the sum of the r-th of n equal runs |
| all-gather | of the result, a multiple of n | the r-th of n equal runs | every part |
| all-to-all | of all inputs, a multiple of n·n | the r-th of n equal runs | the r-th of n parts of each such run |

A message leaves when the messages of its part that stand before it, and go to its sender, have arrived.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from compare.network.machines.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, KINDS, REDUCE_SCATTER
from compare.network.machines.machine import CustomAlgorithm, Machine, Send
from compare.timeline.errors import TimingError, name_file
from meshes.process.documents import read_toml
from meshes.process.one_line import quote

_KEYS = ("collective", "ranks", "parts", "sends")
_MOST_SENDS = 100_000
_MOST_STATES = 1 << 20
"""Ranks × parts."""


def read_custom(path: Path) -> CustomAlgorithm:
    """The algorithm of a file.  `OSError` where it can't be opened, `TimingError`, one line, where it is none."""
    with name_file(path):
        return parse_custom(read_toml(path), name=path.stem)


def parse_custom(table: object, *, name: str) -> CustomAlgorithm:
    """Raises `TimingError`, which names the key, or the message and its ranks."""
    if not isinstance(table, Mapping):
        raise TimingError(f"a table of {', '.join(_KEYS)}, not {quote(table)}")
    for key in table:
        if key not in _KEYS:
            raise TimingError(f"{key}: unknown key; known are {', '.join(_KEYS)}")
    kind = table.get("collective")
    if kind not in KINDS:
        raise TimingError(f"collective: unknown {quote(kind)}; known are {', '.join(KINDS)}")
    size, parts = _whole(table, "ranks"), _whole(table, "parts")
    share = {REDUCE_SCATTER: size, ALL_GATHER: size, ALL_TO_ALL: size * size}.get(kind, 1)
    if size < 2 or parts < 1 or parts % share:
        raise TimingError(f"parts: a positive multiple of {share} for an {kind} of {size} ranks, not {parts}")
    if size * parts > _MOST_STATES:
        raise TimingError(f"parts: ranks × parts are at most {_MOST_STATES:,}, not {size * parts:,}")
    rows = table.get("sends")
    if not isinstance(rows, list) or not 1 <= len(rows) <= _MOST_SENDS:
        raise TimingError(f"sends: a list of 1 to {_MOST_SENDS:,} messages like [0, 1, 0]")
    sends = tuple(_read_send(row, index, size, parts) for index, row in enumerate(rows))
    custom = CustomAlgorithm(name=name, kind=kind, size=size, parts=parts, sends=sends)
    check_result(custom)
    return custom


def custom_table(custom: CustomAlgorithm) -> dict[str, object]:
    """As its file has it; `parse_custom` reads it again."""
    return {
        "collective": custom.kind,
        "ranks": custom.size,
        "parts": custom.parts,
        "sends": [[each.source, each.target, each.part] + ["reduce"] * each.reduces for each in custom.sends],
    }


def collect_custom(machine: Machine) -> dict[str, CustomAlgorithm]:
    """By name, those that a machine has or uses.  Raises `TimingError` where two have one name."""
    used = [each.custom for kind in KINDS for each in machine.algorithms.of(kind) if each.custom is not None]
    by_name: dict[str, CustomAlgorithm] = {}
    for custom in (*machine.custom, *used):
        if by_name.setdefault(custom.name, custom) != custom:
            raise TimingError(f"algorithm: two custom algorithms are called {custom.name!r}")
    return by_name


def check_result(custom: CustomAlgorithm) -> None:
    """Raises `TimingError` where the messages do not make the collective: it names a message or a rank."""
    everyone = (1 << custom.size) - 1
    state = [[_begins(custom, rank, part) for part in range(custom.parts)] for rank in range(custom.size)]
    for index, send in enumerate(custom.sends):
        place = f"sends.{index}, rank {send.source} to {send.target}"
        here, there = state[send.source][send.part], state[send.target][send.part]
        if not here:
            raise TimingError(f"{place}: rank {send.source} does not have part {send.part} yet")
        if send.reduces and custom.kind not in (ALL_REDUCE, REDUCE_SCATTER):
            raise TimingError(f"{place}: an {custom.kind} reduces nothing")
        if send.reduces and here & there:
            twice = (here & there).bit_length() - 1
            raise TimingError(f"{place}: adds what rank {twice} has in part {send.part} a second time")
        state[send.target][send.part] = here | there if send.reduces else here
    for rank, row in enumerate(state):
        for part, ranks in enumerate(row):
            needed = _ends(custom, rank, part, everyone)
            if missing := needed & ~ranks:
                other = (missing & -missing).bit_length() - 1
                raise TimingError(
                    f"sends: this is no {custom.kind}: rank {rank} ends without rank {other}'s part {part}"
                )


def _begins(custom: CustomAlgorithm, rank: int, part: int) -> int:
    """The ranks whose data a rank has in a part, as bits."""
    if custom.kind in (ALL_REDUCE, REDUCE_SCATTER) or part // (custom.parts // custom.size) == rank:
        return 1 << rank
    return 0


def _ends(custom: CustomAlgorithm, rank: int, part: int, everyone: int) -> int:
    run = custom.parts // custom.size
    if custom.kind == ALL_REDUCE:
        return everyone
    if custom.kind == REDUCE_SCATTER:
        return everyone if part // run == rank else 0
    if custom.kind == ALL_TO_ALL and part % run // (run // custom.size) != rank:
        return 0
    return 1 << part // run


def list_levels(custom: CustomAlgorithm, kind: str, size: int) -> list[list[Send]]:
    """Messages that leave at once, step by step.  Raises `TimingError` for another collective or number of ranks.

    A message leaves after those of its part that its sender receives before it, and arrives after what its receiver
    sends or receives of that part before it (but sums come in any order).
    """
    if (kind, size) != (custom.kind, custom.size):
        raise TimingError(f"custom:{custom.name} makes an {custom.kind} of {custom.size} ranks, no {kind} of {size}")
    received: dict[tuple[int, int], int] = {}
    copied: dict[tuple[int, int], int] = {}
    sent: dict[tuple[int, int], int] = {}
    levels: list[list[Send]] = []
    for send in custom.sends:
        source, target = (send.source, send.part), (send.target, send.part)
        before = copied if send.reduces else received
        level = max(received.get(source, -1) + 1, before.get(target, -1) + 1, sent.get(target, 0))
        received[target] = max(received.get(target, -1), level)
        sent[source] = max(sent.get(source, 0), level)
        if not send.reduces:
            copied[target] = level
        levels += [[] for _ in range(level + 1 - len(levels))]
        levels[level].append(send)
    return levels


def byte_share(custom: CustomAlgorithm) -> float:
    """Bytes of one message, per byte of a rank's input."""
    return (custom.size if custom.kind in (ALL_GATHER, ALL_TO_ALL) else 1) / custom.parts


def most_reduced(sends: Sequence[Send]) -> int:
    """Messages of one step that the busiest rank adds to its own."""
    return max(Counter(send.target for send in sends if send.reduces).values(), default=0)


def _read_send(row: object, index: int, size: int, parts: int) -> Send:
    word = row[3] if isinstance(row, list) and len(row) == 4 else "copy"
    if (
        not isinstance(row, list)
        or len(row) not in (3, 4)
        or any(not isinstance(number, int) or isinstance(number, bool) for number in row[:3])
        or word not in ("copy", "reduce")
    ):
        raise TimingError(f'sends.{index}: [from, to, part] or [from, to, part, "reduce"], not {quote(row)}')
    source, target, part = row[:3]
    for rank in (source, target):
        if not 0 <= rank < size:
            raise TimingError(f"sends.{index}: rank {rank} is not among {size} ranks")
    if source == target:
        raise TimingError(f"sends.{index}: rank {source} sends to itself")
    if not 0 <= part < parts:
        raise TimingError(f"sends.{index}: part {part} is not among {parts} parts")
    return Send(source, target, part, word == "reduce")


def _whole(table: Mapping[str, object], key: str) -> int:
    value = table.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MOST_STATES:
        raise TimingError(f"{key}: a whole number from 1, not {quote(value)}")
    return value
