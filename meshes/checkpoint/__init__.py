"""Checkpoints as Hugging Face keeps them: their shapes, their tensors, and slices of them as weights."""

from meshes.checkpoint.config import read_model, read_positions
from meshes.checkpoint.folder import Checkpoint
from meshes.checkpoint.state import from_huggingface

__all__ = ["Checkpoint", "from_huggingface", "read_model", "read_positions"]
