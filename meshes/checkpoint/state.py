"""The arrays of a transformers model in memory, as weights."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from meshes.case import Case
from meshes.checkpoint.slices import Array, check_shapes, read_slice
from meshes.checkpoint.tables import sources
from meshes.weights import weights


def from_huggingface(state: Mapping[str, Array], *, case: Case) -> dict[str, Array]:
    """Every weight of the case from a Hugging Face state dict, by name, in the dtype of its tensors.

    Raises `MeshError` where an array is missing, unknown, or of another shape.
    """
    tensors = Arrays({name: np.asarray(state[name]) for name in state})
    where = sources(case.model, names=frozenset(tensors.state))
    check_shapes(where.values(), tensors=tensors, model=case.model)
    arrays = {}
    for spec in weights(case):
        source = where[spec.row]
        arrays[spec.name] = np.empty(spec.shape, tensors.state[source.each(case.model)[0]].dtype)
        everything = (slice(None),) * len(spec.shape)
        read_slice(spec, source=source, tensors=tensors, case=case, index=everything, out=arrays[spec.name])
    return arrays


@dataclass(frozen=True, slots=True)
class Arrays:
    """Tensors that are in memory."""

    state: dict[str, Array]

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.state[name].shape)

    def matrix(self, name: str, *, lead: tuple[int, ...], rows: range, columns: range) -> Array:
        array: Array = np.atleast_2d(self.state[name][lead])
        return array[rows.start : rows.stop, columns.start : columns.stop]
