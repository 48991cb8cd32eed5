"""The run folder: written atomically, read with no framework installed."""
