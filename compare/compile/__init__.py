"""Compile for TPUs without a TPU; only this package imports jaxlib and libtpu."""
