"""Commands: each parses, calls rooms, and prints; nobody imports one but its shim `compare/<name>/__main__.py`."""
