"""The programs that a profile's operations belong to: those that it carries itself, or one that is given."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compare.hlo.collectives.collectives import collectives
from compare.hlo.collectives.event_names import EventRole, container_names, map_event_names
from compare.hlo.devices.axes import Mesh
from compare.hlo.proto import program
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import Module, read
from compare.timing.errors import TimingError
from compare.timing.xplane.xspace import Space

_METADATA = "/host:metadata"
_HLO = "Hlo Proto"
_NUMBER = re.compile(r"\((\d+)\)$")
_GIVEN, _OWN = "\0given", "\0own "
"""Keys that no profile's program has."""
WRAPPERS = re.compile(r"(?:async|call|fusion|custom-call)-(?:start|update|done)")
"""Opcodes of what another core or thread does, while the device waits or goes on."""
_WRAPPER = re.compile(rf"^\s*(?:ROOT\s+)?%?([\w.\-]+)\s*=\s.*?\s{WRAPPERS.pattern}\(", re.M)
_NAME = re.compile(r"^\s*(?:ROOT\s+)?%?([\w.\-]+)\s*=\s", re.M)


@dataclass(frozen=True, slots=True)
class ProfileProgram:
    """What the names of one program's operations mean."""

    name: str
    carriers: Mapping[str, EventRole]
    """For the names that an execution of a collective may bear."""
    containers: frozenset[str]
    """Loops, calls and branches."""
    waits: frozenset[str]
    """Calls of other cores, and the waits for them."""
    instructions: frozenset[str]


class ProfilePrograms:
    """Programs by the name under which a profile has them, read when they are first asked for."""

    def __init__(
        self,
        protos: Mapping[str, bytes],
        *,
        axes: Mapping[str, int],
        given: Module | None = None,
        modules: Iterable[str] = (),
    ):
        """modules: the names that operations have their programs under, of which a given one may be meant by one."""
        self._protos = protos
        self._axes = axes
        self._given = given
        self._given_is_named = given is not None and given.name in {_NUMBER.sub("", module) for module in modules}
        self._read: dict[str, ProfileProgram | None] = {}
        self.notes: list[str] = []
        self._unfit: list[str] = []
        self._fit = False
        self.mesh = Mesh.of(axes, in_program=None, largest_id=0)

    def find(self, module: str) -> ProfileProgram | None:
        """The program that the profile means by this name; where it has none, the one that is given."""
        if module not in self._read:
            name = self._known(module)
            own = self._own(name) if name is not None else None
            self._read[module] = own or self._other(module)
        return self._read[module]

    def _other(self, module: str) -> ProfileProgram | None:
        """The one that is given, if the profile names none as it is named, or names this one so."""
        if self._given is None or (self._given_is_named and _NUMBER.sub("", module) not in ("", self._given.name)):
            return None
        if _GIVEN not in self._read:
            self._read[_GIVEN] = self._program(self._given.name, self._given)
        return self._read[_GIVEN]

    def placement(self, module: str) -> tuple[int, ...]:
        """The runtime's number of the device at each place of the program; empty where it is not known."""
        name = self._known(module)
        try:
            return program.read_device_assignment(self._protos[name]) if name is not None else ()
        except HloError:
            return ()

    def check(self) -> None:
        """`TimingError` where the axes fit no program that communicates."""
        if self._unfit and not self._fit:
            raise TimingError(f"the axes do not fit the program that was profiled: {self._unfit[0]}")
        self.notes += [f"its axes read ?: {message}" for message in self._unfit]

    def _known(self, module: str) -> str | None:
        """By its whole name, by its number, by its name without; an unnamed one where there is but one."""
        if module in self._protos:
            return module
        number, name = _NUMBER.search(module), _NUMBER.sub("", module)
        if number:
            alike = [key for key in self._protos if key.endswith(number[0])]
        elif name:
            alike = [key for key in self._protos if _NUMBER.sub("", key) == name]
        else:
            alike = list(self._protos)
        return alike[0] if len(alike) == 1 else None

    def _own(self, name: str) -> ProfileProgram | None:
        key = f"{_OWN}{name}"
        if key not in self._read:
            try:
                self._read[key] = self._program(name, read(program.write_hlo_text(self._protos[name])))
            except HloError as error:
                self.notes.append(f"the profile's own program {name!r} cannot be read: {error}")
                self._read[key] = None
        return self._read[key]

    def _program(self, name: str, module: Module) -> ProfileProgram:
        try:
            rows = collectives(module, self._axes)
            self._fit = self._fit or bool(rows)
        except HloError as error:
            rows = collectives(module, {})
            self._unfit += [f"{name}: {error}"] if rows else []
        waits, names = (frozenset(pattern.findall(module.text)) for pattern in (_WRAPPER, _NAME))
        return ProfileProgram(name, map_event_names(module, rows), container_names(module), waits, names)


def read_protos(spaces: Iterable[Space]) -> dict[str, bytes]:
    """The programs that a profile carries, serialized, by name."""
    found: dict[str, bytes] = {}
    for space in spaces:
        for plane in space.planes:
            if plane.name == _METADATA:
                for row, data in plane.metadata.stats.data(_HLO).items():
                    found.setdefault(plane.metadata.names[row], data)
    return found
