"""The engine: whole programs on a machine whose links they share."""
