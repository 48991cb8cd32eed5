"""A slice: what-if simulation: a collective, or a whole run, on any network."""
