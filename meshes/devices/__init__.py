"""The devices: mesh spec and its grammar, TPU generations, topology, chip assignment."""
