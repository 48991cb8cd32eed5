"""A program over all ranks as one graph: what is exported, imported and simulated."""
