"""The errors of this project: each is one clean line, whatever it repeats of what was read."""

from meshes.process.one_line import one_line


class OneLineError(ValueError):
    """What was read, and what would be right, in one line of at most 500 printable characters."""

    def __init__(self, message: object):
        super().__init__(one_line(message))


class MeshError(OneLineError):
    """A mesh, topology, model or case that cannot be."""


class NotOfferedError(MeshError):
    """A case that a framework cannot write in the way that was chosen: no failure where it is a control."""
