"""Whole programs, from Chakra traces or runs: in ASTRA-sim's cycles, or traces of others on our own engine."""
