"""Timelines: measured ones, read from profiles, and modelled ones, which need no TPU."""
