"""The mesh that a program knows itself, and axes held against it."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from compare.hlo.text.errors import HloError
from compare.user_program.program_mesh import mesh_of, mesh_of_text, reading_axes

MESH = (("data", 2), ("tensor", 4))


@dataclass
class Mesh:
    shape: Any


@dataclass
class Sharding:
    mesh: Any


@dataclass
class Result:
    sharding: Any


@dataclass
class Lowered:
    out_info: Any = None
    input_shardings: Any = None
    _lowering: Any = field(default=None)


def over(**axes):
    return Sharding(Mesh(axes))


@pytest.mark.parametrize(
    ("text", "mesh"),
    [
        ('module @f {\n  sdy.mesh @mesh = <["data"=2, "tensor"=4]> {stablehlo.mesh = {}}\n', MESH),
        ('  sdy.mesh @mesh = <["data"=2, "tensor"=4]>\n  sdy.mesh @maximal = <[], device_ids=[0]>\n', MESH),
        ('  sdy.mesh @a = <["data"=2, "tensor"=4]>\n  sdy.mesh @b = <["data"=2, "tensor"=4]>\n', MESH),
        # Two that differ, and one whose devices are in another order than its axes say.
        ('  sdy.mesh @a = <["data"=2, "tensor"=4]>\n  sdy.mesh @b = <["x"=8]>\n', ()),
        ('  sdy.mesh @a = <["data"=2, "tensor"=4], device_ids=[0, 4, 1, 5, 2, 6, 3, 7]>\n', ()),
        ("module @f {\n}\n", ()),
    ],
)
def test_shardy_writes_it_into_the_program(text, mesh):
    assert mesh_of_text(text) == mesh


@pytest.mark.parametrize(
    ("program", "mesh"),
    [
        (Lowered(out_info=Result(over(data=2, tensor=4))), MESH),
        (Lowered(out_info={"a": [Result(over(data=2, tensor=4)), Result(None)]}), MESH),
        (Lowered(input_shardings=((over(data=2, tensor=4),), {"x": object()})), MESH),
        (Lowered(_lowering=type("", (), {"compile_args": {"in_shardings": (over(data=2, tensor=4),)}})), MESH),
        (Lowered(out_info=Result(over(data=2, tensor=4)), input_shardings=((over(x=8),), {})), ()),
        (Lowered(out_info=Result(Sharding(Mesh("2x4")))), ()),
        (object(), ()),
    ],
)
def test_jax_knows_it_by_the_shardings_of_arguments_and_results(program, mesh):
    assert mesh_of(program) == mesh


@pytest.mark.parametrize(
    "axes",
    [
        {"data": 2, "tensor": 4},
        {"data": 2, "x": 2, "y": 2},  # cut anew
        {"a": 2, "b": 4},  # under other names
        {"a": 4, "b": 2},  # nothing tells that it is wrong before the groups are seen
        {"data": 2, "one": 1, "tensor": 4},
        {"slice": 2, "data": 2, "tensor": 4},  # of several slices
    ],
)
def test_axes_may_be_others_but_not_under_the_mesh_s_names(axes):
    assert reading_axes(axes, MESH, name="this") == axes
    assert reading_axes(axes, (), name="this") == axes


def test_without_axes_they_are_the_mesh_s():
    assert list(reading_axes({}, MESH, name="this").items()) == list(MESH)
    assert reading_axes({}, (), name="this") == {}


@pytest.mark.parametrize(
    "axes", [{"tensor": 4, "data": 2}, {"data": 4, "tensor": 2}, {"data": 8}, {"x": 4, "tensor": 2}]
)
def test_the_mesh_s_own_names_have_its_sizes_and_its_order(axes):
    with pytest.raises(HloError) as caught:
        reading_axes(axes, MESH, name="this Lowered")
    spelled = ",".join(f"{name}={size}" for name, size in axes.items())
    assert str(caught.value) == (
        f"this Lowered: the axes are {spelled}, and its own mesh is data=2,tensor=4, outermost first; give them as the "
        "mesh has them, or leave them out"
    )
