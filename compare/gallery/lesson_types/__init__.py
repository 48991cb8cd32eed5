"""Lessons, and the results of their programs."""
