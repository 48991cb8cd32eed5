"""What must not happen to the rows of a damaged HLO text: a lost row, or a changed one where no collective was damaged.

Both are checked on the text alone, independently of the reader.
"""

import random
import re
from collections.abc import Sequence
from operator import attrgetter

from benchmarks.fuzz import mutate
from compare.hlo.collective import Collective

_KINDS = "all-reduce|all-gather|reduce-scatter|ragged-all-to-all|all-to-all|collective-permute|collective-broadcast"
_COLLECTIVE = re.compile(rf"(?<=\s)(?:(?:{_KINDS})(?:-start)?|send|recv)\s*\(")
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
COLUMNS = (
    "kind",
    "axes",
    "network",
    "dtype",
    "mesh_groups",
    "executions",
    "executions_are",
    "payload_bytes",
    "wire_bytes",
    "step_wire_bytes",
)
"""What a row says of what is sent, how often and by whom."""


def comparable_columns(rows: Sequence[Collective]) -> tuple[object, ...]:
    """Columns that damage to a bystander must not change; a lost scope or line may be inferred differently."""
    return tuple(map(attrgetter("name", *COLUMNS), rows))


def describe_loss(text: str, rows: Sequence[Collective]) -> str:
    """What is wrong with the number of rows, or with one of them; empty where nothing is.

    An instruction of a collective is a row, but for receives, what goes to a host, and later parts of an asynchronous
    fusion.
    """
    count = aside = 0
    for line in text.split("\n"):
        plain = _QUOTED.sub('""', line)
        if plain.endswith("{") and " = " not in plain:
            continue  # the head of a computation
        plain = plain.partition(", backend_config=")[0]
        if '"' in plain.replace('""', "") or plain.lstrip().startswith("//"):
            return ""  # an unclosed quote: attributes and text cannot be distinguished this simply
        matches = [match[0] for match in _COLLECTIVE.finditer(plain)]
        count += len(matches)
        side = (
            any(match.startswith("recv") for match in matches)
            or "is_host_transfer=true" in plain
            or "chain_id=" in plain
        )
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
        word
        for line in lines
        if _COLLECTIVE.search(_QUOTED.sub('""', line)) or "-done(" in line
        for word in _NAMES.findall(_QUOTED.sub('""', line))
    }
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


_LEADING = re.compile(
    r" (?:while|conditional|call|compare|constant|add|partition-id|async-start|fusion)\(|^HloModule|^ENTRY|^%"
)
_ATTRIBUTE = re.compile(r", ([a-z_]+)=((?:\[[\d,]*\]<=\[[\d,]*\](?:T\([\d,]*\))?|\{(?:[^{}]|\{[^{}]*\})*\}|[^,{}\s]+))")
_ATTRIBUTES = (
    "use_global_device_ids=true", "use_global_device_ids=false", "use_global_device_ids=TRUE", "channel_id=0",
    "channel_id=7", "replica_groups={}", "replica_groups={{0}}", "replica_groups={{0,1},{2,3}}",
    "replica_groups=[2,4]<=[8]", "replica_groups=[4,2]<=[2,4]T(1,0)", "dimensions={0}", "dimensions={1}",
    "source_target_pairs={{0,1},{1,0}}", "constrain_layout=true", "to_apply=%region_0.1", "is_host_transfer=true",
    "sharding={replicated}", 'frontend_attributes={a="b"}', "split_dimension=0",
    'backend_config={"known_trip_count":{"n":"3"}}', "direction=LE", "direction=GT", "index=1",
)  # fmt: skip
_OPCODES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "copy",
    "negate",
    "all-reduce-start",
    "all-gather-start",
    "collective-permute-start",
)
_DTYPES = ("f32", "bf16", "s32", "u8", "s4", "pred", "f64", "c64", "f8e4m3fn", "u32", "token", "s2")
_NAME = re.compile(r"%[\w.\-]+")
_SHAPE = re.compile(r"(?<![\w.])([a-z]\w*)\[([\d,<=]*)\]")


def damage_communication(text: str, rng: random.Random) -> str:
    """A text with one damage where it says what is sent and how often: collectives, loops, branches, headers."""
    lines = text.split("\n")
    places = [at for at, line in enumerate(lines) if _COLLECTIVE.search(_QUOTED.sub('""', line))]
    leading = [at for at, line in enumerate(lines) if _LEADING.search(line)]
    at = rng.choice(places if rng.random() < 0.6 and places else leading)
    lines[at] = rng.choice(_DAMAGES)(lines[at], lines, rng)
    return "\n".join(lines)


def _matches(pattern: re.Pattern[str], line: str, rng: random.Random) -> re.Match[str] | None:
    found = list(pattern.finditer(line))
    return rng.choice(found) if found else None


def _replaced(line: str, match: re.Match[str] | None, word: str, group: int = 0) -> str:
    return line[: match.start(group)] + word + line[match.end(group) :] if match else line


def _small_number(line: str, lines: list[str], rng: random.Random) -> str:
    match = _matches(re.compile(r"(?<![\w.\-%])\d+(?![\w.])"), line, rng)
    return _replaced(line, match, rng.choice(("0", "1", "2", "3", "4", "5", "7", "8", "9", "16", "64", "-1", "1000")))


def _foreign_attribute(line: str, lines: list[str], rng: random.Random) -> str:
    """The value of another line for the same word, or a value of a list."""
    match = _matches(_ATTRIBUTE, line, rng)
    if not match:
        return line
    values = [other[2] for text in lines for other in _ATTRIBUTE.finditer(text) if other[1] == match[1]]
    values += [word.partition("=")[2] for word in _ATTRIBUTES if word.startswith(f"{match[1]}=")]
    return _replaced(line, match, rng.choice(values), 2)


def _lost_attribute(line: str, lines: list[str], rng: random.Random) -> str:
    return _replaced(line, _matches(_ATTRIBUTE, line, rng), "")


def _another_attribute(line: str, lines: list[str], rng: random.Random) -> str:
    return f"{line}, {rng.choice(_ATTRIBUTES)}"


def _another_opcode(line: str, lines: list[str], rng: random.Random) -> str:
    return _replaced(line, _matches(re.compile(r" ([a-z][a-z\-]+)\("), line, rng), rng.choice(_OPCODES), 1)


def _another_dtype(line: str, lines: list[str], rng: random.Random) -> str:
    return _replaced(line, _matches(_SHAPE, line, rng), rng.choice(_DTYPES), 1)


def _another_size(line: str, lines: list[str], rng: random.Random) -> str:
    match = _matches(_SHAPE, line, rng)
    if not match:
        return line
    dims = match[2].split(",")
    dims[rng.randrange(len(dims))] = rng.choice(("1", "2", "8", "16", "64", "128", "<=8", "0", "1024"))
    return _replaced(line, match, ",".join(dims), 2)


def _another_name(line: str, lines: list[str], rng: random.Random) -> str:
    names = [match[0] for text in lines for match in _NAME.finditer(text)]
    return _replaced(line, _matches(_NAME, line, rng), rng.choice(names)) if names else line


def _comment(line: str, lines: list[str], rng: random.Random) -> str:
    at = rng.randint(0, len(line))
    return (
        line[:at]
        + rng.choice((" ", "/* x */", "\n", "// x", "/*", "*/", "\t", "\r", ",", "  ", "%", "ROOT "))
        + line[at:]
    )


def _another_place(line: str, lines: list[str], rng: random.Random) -> str:
    """The line also stands elsewhere, or not here."""
    lines.insert(rng.randrange(len(lines)), line)
    return line if rng.random() < 0.5 else ""


def _any_damage(line: str, lines: list[str], rng: random.Random) -> str:
    return rng.choice((mutate.delete, mutate.insert, mutate.replace, mutate.number))(line, rng)


_DAMAGES = (
    _small_number,
    _small_number,
    _foreign_attribute,
    _foreign_attribute,
    _lost_attribute,
    _another_attribute,
    _another_opcode,
    _another_dtype,
    _another_size,
    _another_name,
    _comment,
    _another_place,
    _any_damage,
)
