"""Machines and collectives as values: by hand, from TOML, or TPU slices by name."""
