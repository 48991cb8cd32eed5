"""What a profile says of its devices, before anything is joined to a program: the same of every platform."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

RAW = {
    "device": "int32",
    "line": "category",
    "name": "category",
    "hlo_op": "category",
    "module": "category",
    "text": "category",
    "category": "category",
    "tf_op": "category",
    "main": "bool",
    "start_ns": "float64",
    "duration_ns": "float64",
    "wait_ns": "float64",
    "run": "int64",
}
"""The events of operations.

device: logical id, -1 unknown.  line, name: as the profile has them.  hlo_op: the instruction's name.  module: the name
under which the profile holds its program, like `jit_f(0)`, "" unknown.  text: its HLO line, category: its
`hlo_category`, tf_op: its `op_name`; "" where the profile has none.  main: on the device's main line, whose events are
compute unless they are communication.  start_ns: from `Space.zero_ns` on.  wait_ns: NaN where it is not shown.  run:
which execution of the program, -1 unknown.
"""


EXECUTIONS = {"device": "int32", "module": "category", "run": "int64", "start_ns": "float64", "duration_ns": "float64"}
"""Numbers executions of programs, as a device marks them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvents:
    """The operations of one host's devices."""

    events: pd.DataFrame
    """Columns of RAW."""
    steps: pd.DataFrame | None = None
    """Columns of `timeline.STEP_COLUMNS`, where the devices themselves mark steps; else None."""
    executions: pd.DataFrame | None = None
    """Columns of EXECUTIONS, where the devices mark them."""
    spanning_lines: frozenset[str] = frozenset()
    """Lines on which an event spans an asynchronous operation from start to done."""
    other_cores: frozenset[str] = frozenset()
    """Lines of cores that work for the device beside its own."""
    one_at_a_time: bool = False
    """Whether what lies inside another event of the same main line is all that the device does meanwhile."""
    notes: tuple[str, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many events were left out, by what they are (`line Framework Ops`): counted, never silent."""


def frame(columns: Mapping[str, object], *, length: int) -> pd.DataFrame:
    """Events from columns; a plain word or number stands for all of them."""
    made: dict[str, object] = {}
    for name, dtype in RAW.items():
        value = columns[name]
        if dtype == "category" and isinstance(value, str):
            value = pd.Categorical.from_codes([0] * length, categories=pd.Index([value], dtype=object))
        made[name] = value
    numbers = {name: dtype for name, dtype in RAW.items() if dtype != "category"}
    return pd.DataFrame(made, index=pd.RangeIndex(length)).astype(numbers)


def no_events() -> pd.DataFrame:
    return frame({name: "" if dtype == "category" else [] for name, dtype in RAW.items()}, length=0)


def concat_frames(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Frames of the same columns one below the other; words stay categorical, which `pd.concat` forgets."""
    if len(frames) == 1:
        return frames[0].reset_index(drop=True)
    made: dict[str, object] = {}
    for name in frames[0].columns:
        parts = [part[name] for part in frames]
        words = isinstance(parts[0].dtype, pd.CategoricalDtype)
        made[name] = concat_words([part.array for part in parts]) if words else pd.concat(parts, ignore_index=True)
    return pd.DataFrame(made)


def map_words(words: pd.Categorical, meaning: Callable[[str], str]) -> pd.Categorical:
    """Each word by another, looked up once for each that is different."""
    return words_by_code(words.codes, [meaning(word) for word in words.categories])


def words_by_code(codes: NDArray[np.int8 | np.int16 | np.int32 | np.int64], words: Sequence[str]) -> pd.Categorical:
    """Words by number, of which some may be the same; -1 is the last."""
    codes = np.asarray(codes) % max(len(words), 1)
    used = np.flatnonzero(np.bincount(codes, minlength=len(words)))
    each = np.zeros(max(len(words), 1), np.int64)
    each[used], unique = pd.factorize(np.array([words[place] for place in used.tolist()], dtype=object))
    return pd.Categorical.from_codes(each[codes], categories=pd.Index(unique, dtype=object))


def fill_words(words: pd.Categorical, others: pd.Categorical) -> pd.Categorical:
    """The words, and where there is none the others."""
    if "" not in words.categories:
        return words
    both = concat_words([words, others])
    first, second = np.split(np.asarray(both.codes), 2)
    known = list(both.categories)
    empty = known.index("") if "" in known else -1
    return words_by_code(np.where(first == empty, second, first), known)


def concat_words(parts: Sequence[pd.Categorical]) -> pd.Categorical:
    """Words one below the other; "" for what is missing."""
    before = np.cumsum([0, *(len(part.categories) for part in parts)])
    codes = [
        np.where(part.codes < 0, before[-1], np.asarray(part.codes, np.int64) + offset)
        for part, offset in zip(parts, before, strict=False)
    ]
    every = np.concatenate([np.empty(0, np.int64), *codes])
    return words_by_code(every, [*(word for part in parts for word in part.categories), ""])
