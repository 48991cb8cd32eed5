"""The statistics of many events, or of many events' metadata: named numbers and words, read when they are asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.timing.arrays import Ints
from compare.timing.xplane.columnar_protobuf import Bits, Messages, fields

_NAME, _DOUBLE, _TEXT, _BYTES, _REFERENCE = 1, 2, 5, 6, 7
"""Numbers of XStat's fields; 3 and 4 are whole numbers."""


class CodedWords:
    """Words by number: `words[codes[i]]` is that of owner i, where the code is not -1."""

    def __init__(self, codes: Ints, words: Sequence[str]):
        self.codes = codes
        self.words = words


@dataclass(frozen=True, slots=True)
class _Columns:
    """Every statistic: what it is called, which field holds its value, the value, and where its bytes begin."""

    name: Ints
    kind: Ints
    value: Bits
    at: Ints


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
        for found in fields(self._messages):
            named = found.number == _NAME
            columns.name[found.owner[named]] = found.value[named].view(np.int64)
            valued = found.only(~named)
            columns.kind[valued.owner] = valued.number
            columns.value[valued.owner] = valued.value
            columns.at[valued.owner] = valued.at
        return columns

    def _of(self, name: str) -> NDArray[np.intp]:
        """The statistics of this name, by place."""
        wanted = [key for key, known in self._names.items() if known == name]
        if not wanted or not len(self._messages):
            return np.empty(0, np.intp)
        return np.flatnonzero(np.isin(self._columns.name, wanted))

    def numbers(self, name: str, *, missing: int = -1) -> Ints:
        """The whole number that each owner has under this name; of 64 bits without a sign, the bits."""
        result = np.full(self._count, missing, np.int64)
        found = self._of(name)
        kind = self._columns.kind[found] if found.size else found
        whole = found[np.isin(kind, (3, 4))]
        result[self._owner[whole]] = self._columns.value[whole].view(np.int64) if whole.size else 0
        if (floats := found[kind == _DOUBLE]).size:
            result[self._owner[floats]] = np.rint(self._columns.value[floats].view(np.float64)).astype(np.int64)
        for place in found[kind == _TEXT].tolist():
            text = self._text(place)
            if text.removeprefix("-").isdecimal():
                result[self._owner[place]] = int(text)
        return result

    def words(self, name: str) -> CodedWords:
        """The word that each owner has under this name."""
        codes = np.full(self._count, -1, np.int64)
        found = self._of(name)
        kind = self._columns.kind[found] if found.size else found
        texts, references = found[kind == _TEXT], found[kind == _REFERENCE]
        own, words = pd.factorize(np.array([self._text(place) for place in texts.tolist()], dtype=object))
        codes[self._owner[texts]] = own
        keys, each = np.unique(self._columns.value[references] if references.size else [], return_inverse=True)
        codes[self._owner[references]] = each + len(words)
        return CodedWords(codes, [*words, *(self._names.get(int(key), "") for key in keys)])

    def data(self, name: str) -> dict[int, bytes]:
        """The bytes that an owner has under this name, by owner."""
        found = self._of(name)
        kind = self._columns.kind[found] if found.size else found
        return {int(self._owner[place]): self._bytes(place) for place in found[np.isin(kind, (_TEXT, _BYTES))].tolist()}

    def _bytes(self, place: int) -> bytes:
        at = int(self._columns.at[place])
        return self._messages.data[at : at + int(self._columns.value[place])].tobytes()

    def _text(self, place: int) -> str:
        return self._bytes(place).decode(errors="replace")
