"""Processes of their own that compile, translate or run a program: libtpu aborts the process on bad input."""
