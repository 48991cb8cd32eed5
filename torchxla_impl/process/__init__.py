"""The worker: start-up, loading, what a lowered program says of itself."""
