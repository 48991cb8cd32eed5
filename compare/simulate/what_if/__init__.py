"""Whole programs on other machines: step times, exposed time by verdict, sweeps."""
