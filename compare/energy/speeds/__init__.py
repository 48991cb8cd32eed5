"""A run's steps at other speeds: frequencies of the core, and what a faster part would save (docs/calibration.md)."""
