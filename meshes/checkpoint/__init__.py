"""Checkpoints as Hugging Face keeps them: their shapes, their tensors, and slices of them as weights."""

from meshes.checkpoint.config import read_model, read_positions
from meshes.checkpoint.folder import Checkpoint
from meshes.checkpoint.shapes import Shapes, read_shapes
from meshes.checkpoint.state import from_huggingface

__all__ = ["Checkpoint", "Shapes", "from_huggingface", "read_model", "read_positions", "read_shapes"]
