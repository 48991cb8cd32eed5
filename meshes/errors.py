"""The one error of this room."""


class MeshError(ValueError):
    """A mesh, topology, model or case that cannot be: what was read, and what would be right."""
