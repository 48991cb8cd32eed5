"""Laws of axes and groups that hold on every mesh."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from compare.hlo.devices.axes import Mesh
from compare.hlo.devices.groups import read_groups

MESHES = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4).map(
    lambda sizes: {f"axis_{at}": size for at, size in enumerate(sizes)}
)


def mesh_of(sizes):
    return Mesh.of(sizes, in_program=None, largest_id=0)


@st.composite
def meshes_and_some_axes(draw):
    sizes = draw(MESHES)
    return sizes, tuple(axis for axis in sizes if draw(st.booleans()))


def spell(groups):
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


@given(meshes_and_some_axes(), st.randoms(use_true_random=False))
def test_the_groups_of_some_axes_are_found_to_be_theirs(asked, chance: random.Random):
    sizes, axes = asked
    mesh = mesh_of(sizes)
    groups = [chance.sample(group, len(group)) for group in mesh.groups(axes)]
    chance.shuffle(groups)
    wide = [axis for axis in axes if sizes[axis] > 1]
    assert mesh.axes_of_groups(tuple(map(tuple, groups))) == ",".join(wide)


@given(meshes_and_some_axes())
def test_every_spelling_of_the_same_groups_is_read_alike(asked):
    sizes, axes = asked
    groups = mesh_of(sizes).groups(axes)
    names, dims = list(sizes), list(sizes.values())
    shape = ",".join(f"'{name}'={size}" for name, size in sizes.items())
    by_mesh = f"mesh[{shape}] {{{','.join(repr(axis) for axis in axes)}}}"
    turn = [at for at, name in enumerate(names) if name not in axes] + [names.index(axis) for axis in axes]
    size = math.prod(sizes[axis] for axis in axes)
    count = math.prod(dims) // size
    by_iota = f"[{count},{size}]<=[{','.join(map(str, dims))}]T({','.join(map(str, turn))})"
    assert read_groups(spell(groups)) == read_groups(by_mesh) == read_groups(by_iota) == groups


@given(meshes_and_some_axes())
def test_a_shift_along_one_axis_is_a_permute_over_it_and_a_ring_step(asked):
    sizes, axes = asked
    mesh = mesh_of(sizes)
    for axis in axes:
        pairs = tuple(
            (device, group[(at + 1) % len(group)]) for group in mesh.groups((axis,)) for at, device in enumerate(group)
        )
        assert mesh.axes_of_pairs(pairs) == (axis if sizes[axis] > 1 else "")
        assert mesh.is_ring_step(pairs) is (sizes[axis] > 1)
