"""The statistics of many events or metadata rows: named numbers and strings, read on first use."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.profile.xplane.columnar_protobuf import Bits, Messages, fields
from compare.timeline.arrays import Floats, Ints

_NAME, _DOUBLE, _TEXT, _BYTES, _REFERENCE = 1, 2, 5, 6, 7
"""Field numbers of XStat; 3 and 4 are integers."""

_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?")


class CodedWords(NamedTuple):
    """Coded strings: `words[codes[i]]` is the string of owner i, unless the code is -1."""

    codes: Ints
    words: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Every statistic: its name's id, the field of its value, the value, and the offset of its bytes."""

    name: Ints
    kind: Ints
    value: Bits
    offset: Ints


class Stats:
    """Statistics of `count` owners."""

    def __init__(self, messages: Messages, owner: Ints, *, count: int, names: Mapping[int, str]):
        self._messages = messages
        self._owner = owner
        self._count = count
        self._names = names

    @cached_property
    def _columns(self) -> _Columns:
        size = len(self._messages)
        columns = _Columns(
            np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.uint64), np.zeros(size, np.int64)
        )
        for read in fields(self._messages):
            named = read.number == _NAME
            columns.name[read.owner[named]] = read.value[named].view(np.int64)
            valued = read.only(~named)
            columns.kind[valued.owner] = valued.number
            columns.value[valued.owner] = valued.value
            columns.offset[valued.owner] = valued.offset
        return columns

    @cached_property
    def _rows(self) -> dict[int, NDArray[np.intp]]:
        """Id of a name -> the indices of the statistics of that name."""
        if not len(self._messages):
            return {}
        order = np.argsort(self._columns.name, kind="stable")
        ids, begins = np.unique(self._columns.name[order], return_index=True)
        return dict(zip(ids.tolist(), np.split(order, begins[1:]), strict=True))

    def _of(self, name: str) -> NDArray[np.intp]:
        """Indices of the statistics of this name."""
        wanted = [key for key, known in self._names.items() if known == name and key in self._rows]
        return np.sort(np.concatenate([np.empty(0, np.intp), *(self._rows[key] for key in wanted)]))

    def numbers(self, name: str, *, missing: int = -1) -> Ints:
        """Each owner's integer of this name; an unsigned 64-bit one as its bits."""
        result = np.full(self._count, missing, np.int64)
        rows = self._of(name)
        kind = self._columns.kind[rows] if rows.size else rows
        integers = rows[np.isin(kind, (3, 4))]
        result[self._owner[integers]] = self._columns.value[integers].view(np.int64) if integers.size else 0
        if (floats := rows[kind == _DOUBLE]).size:
            result[self._owner[floats]] = np.rint(self._columns.value[floats].view(np.float64)).astype(np.int64)
        for row in rows[kind == _TEXT].tolist():
            text = self._text(row)
            if text.removeprefix("-").isdecimal():
                result[self._owner[row]] = int(text)
        return result

    def floats(self, name: str) -> Floats:
        """Each owner's number of this name; NaN where it has none."""
        result = np.full(self._count, np.nan)
        rows = self._of(name)
        kind = self._columns.kind[rows] if rows.size else rows
        for known, reading in ((kind == _DOUBLE, np.float64), (np.isin(kind, (3, 4)), np.int64)):
            if (chosen := rows[known]).size:
                result[self._owner[chosen]] = self._columns.value[chosen].view(reading)
        for row in rows[kind == _TEXT].tolist():
            if _NUMBER.fullmatch(text := self._text(row)):
                result[self._owner[row]] = float(text)
        return result

    def words(self, name: str) -> CodedWords:
        """Each owner's string of this name."""
        codes = np.full(self._count, -1, np.int64)
        rows = self._of(name)
        kind = self._columns.kind[rows] if rows.size else rows
        texts, references = rows[kind == _TEXT], rows[kind == _REFERENCE]
        text_codes, words = pd.factorize(np.array([self._text(row) for row in texts.tolist()], dtype=object))
        codes[self._owner[texts]] = text_codes
        keys, reference_codes = np.unique(
            self._columns.value[references] if references.size else [], return_inverse=True
        )
        codes[self._owner[references]] = reference_codes + len(words)
        return CodedWords(codes, [*words, *(self._names.get(int(key), "") for key in keys)])

    def data(self, name: str) -> dict[int, bytes]:
        """Owner -> its bytes of this name."""
        rows = self._of(name)
        kind = self._columns.kind[rows] if rows.size else rows
        return {int(self._owner[row]): self._bytes(row) for row in rows[np.isin(kind, (_TEXT, _BYTES))].tolist()}

    def _bytes(self, row: int) -> bytes:
        offset = int(self._columns.offset[row])
        return self._messages.data[offset : offset + int(self._columns.value[row])].tobytes()

    def _text(self, row: int) -> str:
        return self._bytes(row).decode(errors="replace")
