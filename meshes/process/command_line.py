"""What all command lines of this project share: how options are refused, and how a process ends.

A wrong request, or an error, is one clean line on stderr.  SIGTERM and SIGHUP end a process as an interrupt does:
partial results are removed.
"""

import argparse
import gc
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Never

from meshes.process.last_word import claim_stderr, refuse
from meshes.process.log import complain, log_note, set_level
from meshes.process.one_line import one_line, quote

if TYPE_CHECKING:
    from pathlib import Path

REFUSED = 2
"""Exit status of a wrong request."""

LARGEST = 2**31 - 1
"""Of whole-number options."""

_GC_THRESHOLD = 100_000
"""Objects between two runs of Python's cycle collector: at its own 700 they take 5 % of a warm run and free little."""
_ENDING = ("SIGTERM", "SIGHUP")


class Stopped(KeyboardInterrupt):
    """SIGTERM or SIGHUP."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


COMPLETE: list[Callable[[argparse.ArgumentParser], object]] = []
"""Called with the parser of a command where the shell asks how its line could go on."""


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> Never:
        from importlib.metadata import version

        print(f"wirediff {version('wirediff')}")
        parser.exit()


class _Renamed(argparse.Action):
    """An option by its earlier name, which goes on with a note."""

    def __init__(self, *, now: str, notes: list[str], **words: Any):
        super().__init__(help=argparse.SUPPRESS, **words)
        self._now, self._notes = now, notes

    def __call__(self, _: object, namespace: argparse.Namespace, value: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, value)
        self._notes.append(f"{option} is {self._now} now: write {self._now} {value}")


class Parser(argparse.ArgumentParser):
    """Refuses a wrong request in one line; every command has `--version`, `-v` and `--quiet`."""

    def __init__(self, **words: Any):
        super().__init__(**words)
        self._notes: list[str] = []
        self.add_argument(
            "--version", action=_Version, nargs=0, default=argparse.SUPPRESS, help="print the version and exit"
        )
        said = self.add_mutually_exclusive_group().add_argument
        said("-v", "--verbose", action="store_true", help="also say processes, cache hits and seconds")
        said("-q", "--quiet", action="store_true", help="no progress and no notes on stderr, only errors")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        return self._parse(super().parse_args, args, namespace)

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        return self._parse(super().parse_intermixed_args, args, namespace)

    def _parse(self, parse: Callable[..., Any], args: Any, namespace: Any) -> Any:
        for complete in COMPLETE:
            complete(self)
        self._refuse_empty(sys.argv[1:] if args is None else args)
        options = parse(args, namespace)
        set_level("DEBUG" if options.verbose else "ERROR" if options.quiet else "INFO")
        del options.verbose, options.quiet
        for note in self._notes:
            log_note(note)
        self._notes.clear()
        return options

    def _refuse_empty(self, words: Sequence[str]) -> None:
        """What an unset variable of a shell leaves behind is no value of any option."""
        for before, word in zip(["", *words], words, strict=False):
            if not word.strip() or (word.startswith("--") and word.endswith("=")):
                name = word.removesuffix("=") if word.strip() else before if before.startswith("-") else "an argument"
                self.error(f"{name} is empty; is a variable not set?")

    def add_renamed(self, old: str, *, now: str, **words: Any) -> None:
        """An option that is called `now` goes on as `old`, with a note that says what to write."""
        dest = now.lstrip("-").replace("-", "_")
        self.add_argument(old, action=_Renamed, dest=dest, now=now, notes=self._notes, **words)

    def error(self, message: str) -> Never:
        complain(f"error: {one_line(message, most=400)}; see {self.prog} --help")
        self.exit(REFUSED)


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Prints the defaults of options that have one, unless their help says it."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        is_said = not action.default or "(default: " in (action.help or "")
        return action.help if is_said else super()._get_help_string(action)


_FRONT_DOOR: list[tuple[str, Mapping[str, str]]] = []
"""(`wirediff`, module -> subcommand) while a command runs behind the front door."""


@contextmanager
def called_as(name: str, commands: Mapping[str, str]) -> Iterator[None]:
    """In here commands call themselves `<name> <subcommand>`; commands: module -> subcommand."""
    _FRONT_DOOR.append((name, commands))
    try:
        yield
    finally:
        _FRONT_DOOR.pop()


def is_behind_front_door() -> bool:
    return bool(_FRONT_DOOR)


def name_command(prog: str) -> str:
    """How a user calls `compare.run`: `python -m compare.run`, or `wirediff run` behind the front door."""
    last = prog.rpartition(".")[2]
    if _FRONT_DOOR and last in _FRONT_DOOR[-1][1]:
        name, commands = _FRONT_DOOR[-1]
        return f"{name} {commands[last]}"
    return f"python -m {prog}"


def command_parser(prog: str, description: str, *, example: str) -> Parser:
    """A parser with no options yet, whose help prints defaults."""
    return Parser(
        prog=name_command(prog),
        description=description,
        epilog=f"example: {name_command(prog)} {example}",
        formatter_class=_Help,
    )


def whole_number(words: str, *, like: int = 8) -> int:
    """A whole number from 1, for argparse."""
    if not re.fullmatch(r"\d+", words, re.ASCII) or int(words[:20]) < 1:
        raise argparse.ArgumentTypeError(f"{words!r} is no whole number from 1; write one like {like}")
    if len(words) > 20 or int(words) > LARGEST:
        raise argparse.ArgumentTypeError(f"{words!r} is more than {LARGEST:,}; write one like {like}")
    return int(words)


def path(words: str) -> "Path":
    """A path, for argparse, of a default, too.  It loads `pathlib`, which `--help` does not need."""
    from pathlib import Path

    return Path(words)


def new_file(words: str) -> "Path":
    """A file to be written, for argparse: what cannot be one is told before the work."""
    place = path(words)
    if place.is_dir():
        raise argparse.ArgumentTypeError(f"{quote(words)} is a folder; name a file")
    if not place.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{quote(words)}: there is no folder {quote(str(place.parent))}")
    return place


@contextmanager
def stoppable() -> Iterator[None]:
    """In here SIGTERM and SIGHUP raise `Stopped`, so that partial results are removed; main thread only."""
    before: dict[int, Any] = {}

    def stop(number: int, _: object) -> Never:
        for each in before:  # once: the clean-up is not interrupted
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    try:
        for name in _ENDING:
            number = getattr(signal, name)
            if signal.getsignal(number) is signal.SIG_DFL:  # one that is ignored (nohup) stays so
                before[number] = signal.signal(number, stop)
    except ValueError:  # not the main thread, which handles the signal
        before.clear()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_to_status(work: Callable[[], int]) -> int:
    """Do the work, and return the exit status; a `ValueError` of any room, or an error of the system, is one line."""
    with stoppable():
        try:
            status = work()
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of our output has exited, which is no error here
            sys.stdout = None
            return 0
        except KeyboardInterrupt as stopped:
            refuse("stopped")
            return 128 + (stopped.number if isinstance(stopped, Stopped) else signal.SIGINT)
        except (ValueError, OSError, ImportError, MemoryError) as error:
            refuse(f"error: {_said(error)}")
            return REFUSED
        return status


def run_command(command: Callable[[Sequence[str] | None], int], argv: Sequence[str] | None = None) -> Never:
    """Run a command, and exit with its status; without `argv` this process runs nothing else."""
    if argv is None:
        claim_stderr()
        gc.set_threshold(_GC_THRESHOLD)
    raise SystemExit(run_to_status(lambda: command(argv)))


def _said(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory for it"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'output'}: {error.strerror}"
    return str(error) or type(error).__name__


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    import json

    print(json.dumps(value, indent=1, ensure_ascii=False))
