"""Compiling for TPUs that are not there: the one room that imports jaxlib and libtpu."""
