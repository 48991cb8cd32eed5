"""One run: lower and compile the arms, cache, run folder, progress."""
