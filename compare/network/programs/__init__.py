"""Compiled programs on machines: expanded once, simulated on many, shown as timelines."""
