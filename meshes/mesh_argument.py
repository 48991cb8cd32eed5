"""Parse the value of `--mesh`: a name, with `+sp`, with a topology, or the path of a TOML spec file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meshes.devices.mesh_spec import AXES, MeshSpec
from meshes.devices.topology import Topology
from meshes.dims import MEGATRON, SEQUENCE_PARALLEL, Rules, is_sequence_parallel, rules
from meshes.process.documents import read_toml
from meshes.process.errors import MeshError

SPECS = Path(__file__).parent / "specs"
"""The spec files that ship with the project."""

SP = "sp"
"""Suffix of a mesh's name, `tp8+sp`: sequence parallelism, which is a rule and not an axis."""

_KEYS = ("axes", "topology", "order", "rules")


@dataclass(frozen=True, slots=True)
class Plan:
    """A mesh, the slice it fills, the order in which its axes take chips, and the rules."""

    mesh: MeshSpec
    topology: Topology
    order: tuple[str, ...] = AXES
    """Outermost first: the last takes the nearest neighbours.  It moves chips, never device ids."""
    rules: Rules = field(default_factory=lambda: MEGATRON)

    @property
    def name(self) -> str:
        """The mesh, and `+sp` with sequence parallelism."""
        return self.mesh.name + (f"+{SP}" if is_sequence_parallel(self.rules) else "")

    def __post_init__(self) -> None:
        if is_sequence_parallel(self.rules) and self.mesh.tp == 1:
            raise MeshError(f"mesh {self.name} has sequence parallelism over tp, but tp is 1; write tp2+{SP} or more")
        if sorted(self.order) != sorted(AXES):
            raise MeshError(f"order names {list(self.order)}; name each of {', '.join(AXES)} once")
        if self.mesh.num_devices != self.topology.num_devices:
            raise MeshError(
                f"mesh {self.mesh.name} has {self.mesh.num_devices} devices, but {self.topology.name} has "
                f"{self.topology.num_devices}; the product of the sizes must be that, or name another slice"
            )


def read_mesh(text: str) -> Plan:
    """Read the value of `--mesh`."""
    if text.endswith(".toml"):
        return _read_file(text)
    words, at, slice_name = text.partition("@")
    name, plus, word = words.partition("+")
    if plus and word != SP:
        raise MeshError(f"cannot read mesh {text!r}: {word!r} follows +; write +{SP} for sequence parallelism")
    if plus and not name:
        raise MeshError(f"cannot read mesh {text!r}: no mesh precedes +{SP}; write tp8+{SP}")
    return _plan(MeshSpec.parse(name), slice_name if at else None, rules=SEQUENCE_PARALLEL if plus else MEGATRON)


def _plan(mesh: MeshSpec, slice_name: str | None, **more: Any) -> Plan:
    topology = Topology.smallest(mesh.num_devices) if slice_name is None else Topology.parse(slice_name)
    return Plan(mesh, topology, **more)


def _read_file(text: str) -> Plan:
    path = Path(text) if Path(text).exists() else SPECS / text
    try:
        spec = read_toml(path)
    except OSError as error:
        shipped = ", ".join(sorted(file.name for file in SPECS.glob("*.toml")))
        raise MeshError(f"cannot read mesh file {text!r} ({error.strerror}); shipped are {shipped}") from None
    except MeshError as error:
        raise MeshError(f"mesh file {text!r} is {error}") from None
    try:
        return _read_spec(spec)
    except MeshError as error:
        raise MeshError(f"mesh file {text!r}: {error}") from None


def _read_spec(spec: dict[str, Any]) -> Plan:
    if unknown := sorted(set(spec) - set(_KEYS)):
        raise MeshError(f"unknown keys {', '.join(unknown)}; the keys are {', '.join(_KEYS)}")
    axes = spec.get("axes")
    if not isinstance(axes, dict) or not axes:
        raise MeshError("axes is missing; write a table of axis = size, like axes = { pp = 2, tp = 4 }")
    topology = spec.get("topology")
    if topology is not None and not isinstance(topology, str):
        raise MeshError(f"topology is {topology!r}; write a string, like 'v5e:2x4'")
    return _plan(
        MeshSpec.of(list(axes.items()), read=str(axes)),
        topology,
        order=_read_order(spec.get("order", list(AXES))),
        rules=_read_rules(spec.get("rules", {})),
    )


def _read_order(order: Any) -> tuple[str, ...]:
    """The axes that are named keep their order; those left out stay outermost."""
    if not isinstance(order, list) or not set(map(str, order)) <= set(AXES) or len(set(order)) != len(order):
        raise MeshError(f"order is {order!r}; list axes of {', '.join(AXES)}, each once, outermost first")
    return (*(axis for axis in AXES if axis not in order), *order)


def _read_rules(changes: Any) -> Rules:
    if not isinstance(changes, dict) or not all(isinstance(axis, str) for axis in changes.values()):
        raise MeshError(f"rules is {changes!r}; write a table of dim = axis, like rules = {{ vocab = 'none' }}")
    return rules({dim: None if axis == "none" else axis for dim, axis in changes.items()})
