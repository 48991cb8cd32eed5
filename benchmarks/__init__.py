"""Figures that the README states: ratios from one run, never timed tests."""
