"""Device events from TPU and CPU profiles."""
