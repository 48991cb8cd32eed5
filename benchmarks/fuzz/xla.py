"""HLO texts held against XLA's own parser: what it reads and prints again has the rows that were read here.

The parser has a process of its own: on text that parses and is invalid it aborts.  What it refuses and is read here is
counted by its reason; a single damage that changes rows, and that XLA refuses, is a finding unless the reason is named.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from operator import attrgetter

from benchmarks.fuzz.findings import Note, Wrong
from benchmarks.fuzz.hlo import COLUMNS
from compare.hlo.collectives.collectives import collectives
from compare.hlo.devices.axes import read_axes
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

SERVE = """
import sys
from jaxlib import _hlo

given, out = sys.stdin.buffer, sys.stdout.buffer
options = _hlo.HloPrintOptions()
while size := given.readline():
    text = given.read(int(size)).decode()
    # A trip count may depend on a table; of an elided one, XLA makes up the numbers.
    options.print_large_constants = "{...}" not in text
    try:
        found, said = b"printed", _hlo.hlo_module_from_text(text).to_string(options)
    except (RuntimeError, ValueError) as error:
        found, said = b"refused", str(error)
    said = said.encode(errors="replace")
    out.write(b"%s %d\\n%s" % (found, len(said), said))
    out.flush()
"""

PRINTED, REFUSED, ABORTED = "printed", "refused", "aborted"


class XlaParser:
    """A process that prints again what XLA's parser reads; one that died is started anew."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the process is)
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )

    def print_again(self, text: str) -> tuple[str, str]:
        """(`PRINTED`, the text as XLA prints it), (`REFUSED`, why), or (`ABORTED`, the check that failed)."""
        data = text.encode(errors="replace")
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        self._log.seek(0)
        self._log.truncate()
        stdin.write(b"%d\n%s" % (len(data), data))
        stdin.flush()
        head = stdout.readline().decode().split()
        if head:
            return head[0], stdout.read(int(head[1])).decode()
        self.close()
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").splitlines()
        self._process = self._start()
        return ABORTED, next((line for line in said if "Check failed" in line), "without a word")

    def close(self) -> None:
        with self._process:
            self._process.kill()


REFUSED_HERE = (
    r"has no end (?:before another|in the text)",  # a brace at the end of an instruction's line
    r"stands outside of every computation",  # a computation's first line that is broken, or has its first instruction
    r"two instructions on one line|the operand .* is not in its computation",
    r"dimensions=\{-|cannot read the dims|unknown spelling",  # numbers with a sign, white space between brackets
    r"no ENTRY computations",  # XLA takes the last one
    r"more than the end of a computation",  # a shape that is broken behind a brace
    r"its operands do not fit it",  # its parser does not hold an operation's operands against each other
    r"its target names device|device groups .* have sizes|the transpose of device groups",  # nor groups against devices
    r"cannot read",  # a line that is broken inside of a word, or of a shape
    r"does not fit its operand|its operand is \w+ and its result",  # the print has the outer shape of an async start
)
"""What XLA's parser takes and is refused here, in one line that says where; XLA prints none of it."""

OTHER_ROWS = (
    r"must have more than one device per group",  # a mesh whose groups have one device each
    r"attribute dimensions is expected",  # a call that became a collective in groups of one
    r"computation does not exist",  # a reducer that stands behind its use
    r"expects opcode",  # a type that is another's end: f16 of bf16
)
"""Why XLA refuses what is read here with other rows than before the damage: they are those of the text."""


@cache
def _parser() -> XlaParser:
    return XlaParser()


def hold_against_xla(text: str, axes: str, *, before: Counter[tuple[object, ...]] | None) -> object:
    """before: the rows before a single damage.  Raises `HloError` where the text is refused here."""
    found, said = _parser().print_again(text)
    try:
        rows = count_rows(text, axes)
    except HloError as error:
        if found == PRINTED and _is_read(said, axes) and not _is_named(str(error), REFUSED_HERE):
            raise Wrong(f"XLA reads what is refused here: {_plain(str(error))}") from None
        raise
    if found == PRINTED:
        try:
            printed = count_rows(said, axes)
        except HloError as error:
            if not _is_named(str(error), REFUSED_HERE):
                raise Wrong(f"what XLA prints again is refused: {_plain(str(error))}") from None
            raise
        if printed != rows:
            raise Wrong(f"other rows than of the text that XLA prints again: {sorted(map(str, rows - printed))[:1]}")
        return rows
    reason = _plain((said.partition("error: ")[2] or said).partition("\n")[0].partition(". ")[0])
    if before is None:
        return Note(f"{found} by XLA alone, after any damage")
    if rows == before:
        return Note(f"{found} by XLA alone, the same rows")
    if not all(map(_is_doubtful, rows - before)) and not _is_named(reason, OTHER_ROWS):
        raise Wrong(f"other rows, of a text that XLA {found}: {reason}")
    return Note(f"{found} by XLA alone, other rows: {reason}")


def _is_read(text: str, axes: str) -> bool:
    try:
        count_rows(text, axes)
    except HloError:
        return False
    return True


def count_rows(text: str, axes: str) -> Counter[tuple[object, ...]]:
    """What is sent, how often and by whom; without names, which XLA makes unique, and places."""
    columns = attrgetter(*COLUMNS, "device_executions", "reducer")
    return Counter(map(columns, collectives(read(text), read_axes(axes) if axes else {})))


def _is_doubtful(columns: tuple[object, ...]) -> bool:
    """Whether a row says itself that not all is known of it: how often it runs, or how it reduces."""
    kind, *_, reducer = columns
    return "exact" not in columns or (not reducer and kind in ("all-reduce", "reduce-scatter"))


def _is_named(said: str, patterns: Sequence[str]) -> bool:
    return any(re.search(pattern, said) for pattern in patterns)


def _plain(said: str) -> str:
    """A reason without what is of one text alone."""
    return re.sub(
        r"\d+", "N", re.sub(r"'[^']*'|\"[^\"]*\"|%?[\w.\-]*\d[\w.\-]*", "_", re.sub(r"^line \d+: ", "", said))
    )[:100]
