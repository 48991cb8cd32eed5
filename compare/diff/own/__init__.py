"""The Python API: `from compare import collectives, assert_collectives`."""
