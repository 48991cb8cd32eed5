"""What traces a witness's program: JAX, torchax or PyTorch/XLA.  Each has `lower` and `Session`."""
