"""The gallery's patterns in PyTorch/XLA: the few lines that are compiled, and that its pages show."""
