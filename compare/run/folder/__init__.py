"""The run folder: written whole, read again with no framework installed."""
