"""Every reader under damaged and hostile input: `python -m benchmarks.fuzz`."""
