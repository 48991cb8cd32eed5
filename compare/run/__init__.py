"""One run: lower and compile both arms, cache, run folder, progress."""
