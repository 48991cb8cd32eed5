"""The gallery's patterns in JAX: the few lines that are compiled, and that its pages show."""
