"""The options of ASTRA-sim's command line, from `run.txt` beside a trace.

Source: `CmdLineParser.cc` and `main.cc` of ASTRA-sim's analytical frontend.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from compare.timeline.errors import TimingError
from meshes.process.one_line import quote

MOST_BYTES = 1 << 16
_WITHOUT_EFFECT = ("logging-configuration", "logging-folder", "compute-scale", "comm-scale", "workload-configuration")
"""Nothing there reads the two scales; a folder has the files of one trace."""
_FILES = {
    "comm-group-configuration": "groups.json",
    "system-configuration": "system.json",
    "network-configuration": "network.yml",
    "remote-memory-configuration": "memory.json",
}
_SWITCH = "rendezvous-protocol"
_KNOWN = ("num-queues-per-dim", "injection-scale", _SWITCH, *_FILES, *_WITHOUT_EFFECT)
_TRUE, _FALSE = ("1", "t", "T", "true", "True", "TRUE"), ("0", "f", "F", "false", "False", "FALSE")
_AWARE = re.compile(r"congestion[_-]aware", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """What a command line says that changes times."""

    queues: int = 1
    """Of each dim."""
    injection_scale: float = 1.0
    """Of the endpoint delay."""
    rendezvous: bool = False
    """Whether a sender waits for 8,192 bytes from its receiver."""
    aware: bool = False
    """Whether the program is the backend whose links are shared."""


def read_run_line(path: Path) -> RunLine:
    """Of no file, the defaults.  `TimingError`, which names the option, for what is not simulated."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")[:MOST_BYTES]
    except FileNotFoundError:
        return RunLine()
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        raise TimingError(f"no command line: {error}") from None
    options = _list_options(words)
    for name, value in options.items():
        if name not in _KNOWN:
            raise TimingError(f"--{name[:60]}: not simulated; known are {', '.join(f'--{each}' for each in _KNOWN)}")
        if name in _FILES and Path(value).name != _FILES[name]:
            raise TimingError(f"--{name}: {_FILES[name]} of the folder is read, not {quote(value)}; rename the file")
    return RunLine(
        queues=_queues(options.get("num-queues-per-dim", "1")),
        injection_scale=_scale(options.get("injection-scale", "1")),
        rendezvous=_is_on(options.get(_SWITCH, "false")),
        aware=any(_AWARE.search(word) for word in words if not word.startswith("--")),
    )


def _list_options(words: list[str]) -> dict[str, str]:
    """Of `--name=value` and `--name value`; a switch takes no word behind it."""
    options, left = {}, list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("--"):
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        if not equals:
            value = "true" if name == _SWITCH else left.pop(0) if left and not left[0].startswith("--") else ""
        options[name] = value
    return options


def _queues(word: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,5}", word, re.ASCII):
        raise TimingError(f"--num-queues-per-dim: a whole number from 1, not {quote(word)}")
    return int(word)


def _scale(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e9:
        raise TimingError(f"--injection-scale: a number from 0, not {quote(word)}")
    return value


def _is_on(word: str) -> bool:
    if word not in (*_TRUE, *_FALSE):
        raise TimingError(f"--{_SWITCH}: true or false, not {quote(word)}")
    return word in _TRUE
