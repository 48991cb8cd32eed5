"""Which part of the model a collective belongs to, and what its data is."""
