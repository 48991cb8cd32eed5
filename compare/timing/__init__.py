"""Timelines: measured ones, read from profiles, and modelled ones, for the TPU that isn't there."""
