"""Modelled joules and watts on the page and in a terminal; each figure with its range."""
