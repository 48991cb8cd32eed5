"""The HLO texts between libtpu's passes, from its own pass dumps, in one archive.

An archive (`passes.tar.xz`, a plain tar) holds the program as the framework wrote it, and the text before and after
each requested pass.  Near-identical texts in one stream are small.
"""

import io
import lzma
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from compare.hlo.text.errors import HloError

FILE = "passes.tar.xz"
"""The archive's file name in a cell's folder."""

START, END = "pipeline-start", "pipeline-end"
FIRST = "before_optimizations"

_DUMP = re.compile(r"(?:^|\.)(?P<number>\d{4,})\.(?P<pipeline>[^.]+)\.after_(?P<after>.+)\.before_(?P<before>.+)\.txt$")
_FIRST = re.compile(rf"(?:^|\.){FIRST}\.txt$")
_MODULE = re.compile(r"module_(\d+)\.(.*)")
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 1 << 25, "nice_len": 273, "mf": lzma.MF_HC4}]
"""LZMA dictionary size: it must span a whole text, to match the same lines of the previous one."""
MOST_BYTES = 1 << 29
"""Limit for an unpacked archive: four times the largest seen."""

_MOST_MEMORY = 1 << 27
"""Memory limit of the decompressor: four times what our archives need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The program's text between two passes."""

    pipeline: str
    after: str
    """The pass that ran last; `pipeline-start` at the start of a pipeline, empty before the first."""
    before: str
    """The pass that runs next."""
    text: str

    def runs_into(self, following: "Snapshot") -> bool:
        """True if exactly one run of a pass lies between the two."""
        return self.before == following.after and self.pipeline == following.pipeline


def pack(folder: Path, *, strip: Callable[[str], str]) -> bytes:
    """What XLA has dumped into a folder, as an archive; nothing where it dumped no pass.

    Of several modules that with the most text: a framework's constants are others, and so is the same program before
    libtpu has rewritten 64-bit numbers, which may be the one that has the program as it was written.  `strip` takes
    paths of this machine off a text.
    """
    files = [path for path in sorted(folder.glob("*.txt")) if _DUMP.search(path.name) or _FIRST.search(path.name)]
    if not files:
        return b""
    sizes = Counter[tuple[str, str]]()
    for path in files:
        sizes[_module(path)] += path.stat().st_size
    number, name = sizes.most_common(1)[0][0]
    dumps = [path for path in files if _module(path) == (number, name) and _DUMP.search(path.name)]
    dumps += [path for path in files if _module(path)[1] == name and _FIRST.search(path.name)][:1]
    packed = io.BytesIO()
    with lzma.open(packed, "wb", filters=_FILTERS) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for path in sorted(dumps, key=lambda path: _order(path.name)):
            text = strip(path.read_text(encoding="utf-8")).encode()
            entry = tarfile.TarInfo(_short(path.name))  # no time, no owner: the same program gives the same bytes
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


def unpack(data: bytes) -> list[Snapshot]:
    """The texts of an archive, in order.  `HloError` where it is cut, damaged or something else."""
    snapshots: list[Snapshot] = []
    try:
        with tarfile.open(fileobj=io.BytesIO(_decompress(data)), mode="r|") as tar:
            for entry in tar:
                if not entry.isreg() or entry.issparse():
                    raise HloError(f"the recorded passes hold {entry.name!r}, which is no text of a pass")
                content = tar.extractfile(entry)
                assert content is not None
                snapshots.append(_snapshot(entry.name, content.read().decode()))
    except (lzma.LZMAError, tarfile.TarError, EOFError, UnicodeDecodeError, OSError) as error:
        raise HloError(f"the recorded passes are cut or damaged: {error}") from None
    return snapshots


def _decompress(data: bytes) -> bytes:
    decompressor = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_MOST_MEMORY)
    content = decompressor.decompress(data, max_length=MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise HloError(f"the recorded passes are more than {MOST_BYTES >> 20} MiB, which is the most that is read")
    if not decompressor.eof:
        raise EOFError("the end is missing")
    return content


def spans(snapshots: Sequence[Snapshot]) -> list[str]:
    """What lies between each snapshot and the next: one pass by its name, or several: `from A to B`.

    A pass can be a pipeline of others: what lies between two texts from inside of it is its own doing.  After the last
    it is the end of the compile.
    """
    names, runs = [], _runs(snapshots)
    for at, snapshot in enumerate(snapshots):
        inside = [name for begin, end, name in runs if begin <= at < end]
        if inside:
            names.append(inside[0])
        else:
            following = snapshots[at + 1] if at + 1 < len(snapshots) else None
            begin = _word(snapshot.after, snapshot.pipeline) if snapshot.after else "the program"
            names.append(f"from {begin} to {_word(following.before, following.pipeline) if following else 'the end'}")
    return names


def _runs(snapshots: Sequence[Snapshot]) -> list[tuple[int, int, str]]:
    """(index before, index after, name) of each recorded run of a pass, the shortest span first."""
    runs = []
    for begin, snapshot in enumerate(snapshots):
        ends = (at for at in range(begin + 1, len(snapshots)) if snapshot.runs_into(snapshots[at]))
        if snapshot.before and (end := next(ends, None)) is not None:
            runs.append((begin, end, snapshot.before))
    return sorted(runs, key=lambda run: run[1] - run[0])


def _word(name: str, pipeline: str) -> str:
    return pipeline if name in (START, END) else name


def _snapshot(name: str, text: str) -> Snapshot:
    if _FIRST.search(name):
        return Snapshot(pipeline="", after="", before="", text=text)
    match = _DUMP.search(name)
    if not match:
        raise HloError(f"the recorded passes hold {name!r}, which is no text of a pass")
    return Snapshot(pipeline=match["pipeline"], after=match["after"], before=match["before"], text=text)


def _short(name: str) -> str:
    """The name of a dump, without its module's name."""
    match = _DUMP.search(name)
    return name[match.start() :].lstrip(".") if match else f"{FIRST}.txt"


def _order(name: str) -> int:
    match = _DUMP.search(name)
    return int(match["number"]) if match else -1


def _module(path: Path) -> tuple[str, str]:
    """The number and the name of the module that a dump is of."""
    tail = _DUMP.search(path.name) or _FIRST.search(path.name)
    match = _MODULE.match(path.name[: tail.start()] if tail else path.name)
    return (match[1], match[2]) if match else ("", "")
