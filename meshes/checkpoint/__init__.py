"""Checkpoints as Hugging Face keeps them: their shapes, their tensors, and slices of them as weights."""
