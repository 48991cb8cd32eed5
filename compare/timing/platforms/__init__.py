"""What TPU and CPU profiles show of their devices."""
