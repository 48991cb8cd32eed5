"""Chakra execution traces: one file a rank, a graph of compute, collectives, sends and receives; written and read."""
