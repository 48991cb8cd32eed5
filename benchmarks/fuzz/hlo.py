"""What must not happen to the rows of a damaged HLO text: a lost row, or a changed one where no collective was damaged.

Both are checked on the text alone, independently of the reader.
"""

import random
import re
from collections.abc import Sequence

from benchmarks.fuzz import mutate
from compare.hlo.collective import Collective

_KINDS = (
    "all-reduce|all-gather|reduce-scatter|ragged-all-to-all|all-to-all|collective-permute|collective-broadcast"
)  # fmt: skip
_COLLECTIVE = re.compile(rf"(?<=\s)(?:(?:{_KINDS})(?:-start)?|send|recv)\(")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_CALLED = re.compile(
    r"(?:calls|to_apply|condition|body|true_computation|false_computation|\w+_computations)=(\{[^}]*\}|%?[\w.\-]+)"
)
_HEAD = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_FLOATS = re.compile(
    r"^  %?([\w.\-]+) = (?:bf16|f16|f32|f8\w+)\[[\d,]*\]\S* (?:fusion|add|subtract|multiply|divide|maximum|exponential"
    r"|dot|convolution|transpose|broadcast|reduce|negate|tanh|rsqrt|select|copy|pad|reshape|dynamic-update-slice)\("
)
_NAMES = re.compile(r"%?([A-Za-z_][\w.\-]*)")


def comparable_columns(rows: Sequence[Collective]) -> tuple[object, ...]:
    """Columns that damage to a bystander must not change; a lost scope or line may be inferred differently."""
    return tuple(
        (row.name, row.kind, row.axes, row.network, row.dtype, row.mesh_groups, row.executions, row.executions_are,
         row.payload_bytes, row.wire_bytes, row.step_wire_bytes)
        for row in rows
    )  # fmt: skip


def describe_loss(text: str, rows: Sequence[Collective]) -> str:
    """What is wrong with the number of rows, or with one of them; empty where nothing is.

    An instruction of a collective is a row, but for receives, what goes to a host, and later parts of an asynchronous
    fusion.
    """
    count = aside = 0
    for line in text.split("\n"):
        plain = _QUOTED.sub('""', line)
        if '"' in plain.replace('""', "") or plain.lstrip().startswith("//"):
            return ""  # an unclosed quote: attributes and text cannot be distinguished this simply
        matches = [match[0] for match in _COLLECTIVE.finditer(plain)]
        count += len(matches)
        side = "recv(" in matches or "is_host_transfer=true" in plain or "chain_id=" in plain
        aside += len(matches) if side else 0
    if not count - aside <= len(rows) <= count:
        return f"{count} collectives stand in the text, {aside} perhaps no rows, and {len(rows)} rows were read"
    bad = [
        row.name for row in rows if row.payload_bytes < 0 or (row.executions or 0) < 0 or (row.step_wire_bytes or 0) < 0
    ]
    return f"the row {bad[0]!r} has less than nothing" if bad else ""


def find_bystanders(text: str) -> list[int]:
    """Lines that compute with floats, in no computation that a fusion of a collective calls, next to no collective.

    No loop's count, no branch that is understood and no size of a collective can depend on them.
    """
    lines = text.split("\n")
    owner, name = [], ""
    for line in lines:
        head = _HEAD.match(line)
        name = head[1] if head else name
        owner.append(name)
    near = {owner[at] for at, line in enumerate(lines) if _COLLECTIVE.search(_QUOTED.sub('""', line))}
    leading = set(near)
    before = -1
    while len(leading) != before:
        before = len(leading)
        for at, line in enumerate(lines):
            called = {word for match in _CALLED.findall(line) for word in _NAMES.findall(match)}
            if called & leading:
                leading.add(owner[at])
    uncalled = {word for word in leading if not any(_calls(line, word) and " fusion(" in line for line in lines)}
    touched = {
        word for line in lines if _COLLECTIVE.search(_QUOTED.sub('""', line)) or "-done(" in line
        for word in _NAMES.findall(_QUOTED.sub('""', line))
    }  # fmt: skip
    return [
        at
        for at, line in enumerate(lines)
        if (match := _FLOATS.match(line))
        and (owner[at] in uncalled or owner[at] not in leading)
        and match[1] not in touched
        and not {word for words in _CALLED.findall(line) for word in _NAMES.findall(words)} & leading
    ]


def _calls(line: str, name: str) -> bool:
    return any(name in _NAMES.findall(words) for words in _CALLED.findall(line))


def damage_beside(text: str, places: Sequence[int], rng: random.Random) -> str:
    """A text damaged in one of these lines, or right before or behind it."""
    lines = text.split("\n")
    at = rng.choice(places)
    choice = rng.randrange(8)
    if choice == 0:
        del lines[at]
    elif choice == 1:
        lines.insert(at, lines[rng.choice(places)])
    elif choice == 2:
        lines.insert(
            at + rng.randrange(2), rng.choice(("}", "{", "  }", "// x", "", "} // end", "ENTRY main {", "x {", "x"))
        )
    elif choice == 3:
        other = rng.choice(places)
        lines[at] += rng.choice((" ", "", ", ")) + lines[other].strip()
    elif choice == 4:
        begin = rng.randint(0, len(lines[at]))
        lines[at] = lines[at][:begin] + "\n" + lines[at][begin:]
    else:
        lines[at] = rng.choice((mutate.delete, mutate.insert, mutate.replace, mutate.number, mutate.stretch))(
            lines[at], rng
        )
    return "\n".join(lines)
