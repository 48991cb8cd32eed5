"""Small programs that are timed on this machine's devices, for `compare.calibrate`."""
