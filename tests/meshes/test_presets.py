"""Each preset has a mesh that it is compiled on in `benchmarks.presets`, and that holds its weights and its cache."""

import pytest

from benchmarks.presets import PRESETS
from meshes.case import Case
from meshes.memory import check_fits
from meshes.models import MODELS


def test_every_preset_is_compiled_somewhere():
    assert set(PRESETS) == set(MODELS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_fits_the_mesh_that_it_is_compiled_on(name):
    mesh, *words = PRESETS[name]
    check_fits(Case.read(mesh, model_name=name, batch=int(words[1]) if words else 8))
