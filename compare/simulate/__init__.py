"""A slice: what collectives cost on a network that need not exist."""
