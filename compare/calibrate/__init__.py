"""Constants of a device from measured windows of work: profile once, model everywhere (docs/calibration.md)."""
