"""HLO text as computations and instructions, with their attributes, shapes and source metadata."""
