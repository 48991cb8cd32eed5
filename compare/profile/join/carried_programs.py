"""The programs of a profile's operations: those that it carries itself, or a given one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.collectives.event_names import EventRole, container_names, map_event_names
from compare.hlo.devices.axes import Mesh
from compare.hlo.proto import program
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import Module, read
from compare.profile.join.local_copies import find_local_copies
from compare.profile.xplane.xspace import Space
from compare.timeline.errors import TimingError

_METADATA = "/host:metadata"
_HLO = "Hlo Proto"
_NUMBER = re.compile(r"\((\d+)\)$")
_GIVEN, _OWN = "\0given", "\0own "
"""Cache keys that no program of a profile can have."""
WRAPPERS = re.compile(r"(?:async|call|fusion|custom-call)-(?:start|update|done)")
"""Opcodes of work on another core or thread, while the device waits or continues."""
_WRAPPER = re.compile(rf"^\s*(?:ROOT\s+)?%?([\w.\-]+)\s*=\s.*?\s{WRAPPERS.pattern}\(", re.M)
_NAME = re.compile(r"^\s*(?:ROOT\s+)?%?([\w.\-]+)\s*=\s", re.M)


@dataclass(frozen=True, slots=True)
class ProfileProgram:
    """The roles of one program's operations, by name."""

    name: str
    carriers: Mapping[str, EventRole]
    """Event name -> its role in the execution of a collective."""
    containers: frozenset[str]
    """Loops, calls and branches."""
    waits: frozenset[str]
    """Calls to other cores, and the waits for them."""
    instructions: frozenset[str]
    copies: Mapping[str, str]
    """Starts of local copies, and waits for them -> from which memory to which."""


class ProfilePrograms:
    """Programs by their name in the profile, read on first use."""

    def __init__(
        self,
        protos: Mapping[str, bytes],
        *,
        axes: Mapping[str, int],
        given: Module | None = None,
        given_rows: Sequence[Collective] = (),
        modules: Iterable[str] = (),
    ):
        """modules: the program names of the profile's operations; a given program may be one of them.  given_rows: the
        given program's collectives, with these axes, if they are known already.
        """
        self._protos = protos
        self._axes = axes
        self._given, self._given_rows = given, given_rows
        self._given_is_named = given is not None and given.name in {_NUMBER.sub("", module) for module in modules}
        self._read: dict[str, ProfileProgram | None] = {}
        self.notes: list[str] = []
        self._unfit: list[str] = []
        self._fit = False
        self.mesh = Mesh.of(axes, in_program=None, largest_id=0)

    def find(self, module: str) -> ProfileProgram | None:
        """The profile's program of this name; without one, the given program."""
        if module not in self._read:
            name = self._known(module)
            carried = self._own(name) if name is not None else None
            self._read[module] = carried or self._other(module)
        return self._read[module]

    def _other(self, module: str) -> ProfileProgram | None:
        """The given program, unless the profile names it and `module` is another name."""
        if self._given is None or (self._given_is_named and _NUMBER.sub("", module) not in ("", self._given.name)):
            return None
        if _GIVEN not in self._read:
            self._read[_GIVEN] = self._program(self._given.name, self._given)
        return self._read[_GIVEN]

    def placement(self, module: str) -> tuple[int, ...]:
        """The runtime's number of each device, by its index in the program; empty where unknown."""
        name = self._known(module)
        try:
            return program.read_device_assignment(self._protos[name]) if name is not None else ()
        except HloError:
            return ()

    def text_of(self, module: str) -> str:
        """The HLO text of the program that the profile carries under this name.  `TimingError` where it has none."""
        name = self._known(module)
        if name is None:
            raise TimingError(
                f"the profile does not carry the program {module!r}; give its compiled HLO with --hlo FILE"
            )
        try:
            return program.write_hlo_text(self._protos[name])
        except HloError as error:
            raise TimingError(f"the profile's own program {name!r} cannot be read: {error}") from None

    def check(self) -> None:
        """`TimingError` where the axes fit no program that communicates."""
        if self._unfit and not self._fit:
            raise TimingError(f"the axes do not fit the program that was profiled: {self._unfit[0]}")
        self.notes += [f"its axes read ?: {message}" for message in self._unfit]

    def _known(self, module: str) -> str | None:
        """The key of a program: by full name, by number, by name without number; an unnamed one if it is alone."""
        if module in self._protos:
            return module
        # A TPU's line of modules says `jit_f(17)`, an operation outside of all runs only `program_id` 17.
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
            rows = self._given_rows if module is self._given and self._given_rows else collectives(module, self._axes)
            self._fit = self._fit or bool(rows)
        except HloError as error:
            rows = collectives(module, {})
            self._unfit += [f"{name}: {error}"] if rows else []
        waits, names = (frozenset(pattern.findall(module.text)) for pattern in (_WRAPPER, _NAME))
        copies = find_local_copies(module)
        return ProfileProgram(name, map_event_names(module, rows), container_names(module), waits, names, copies)


def read_protos(spaces: Iterable[Space]) -> dict[str, bytes]:
    """Name -> serialized HLO proto of each program that a profile carries."""
    protos: dict[str, bytes] = {}
    for space in spaces:
        for plane in space.planes:
            if plane.name == _METADATA:
                for row, data in plane.metadata.stats.data(_HLO).items():
                    protos.setdefault(plane.metadata.names[row], data)
    return protos
