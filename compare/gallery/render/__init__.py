"""The gallery drawn: pages, pictures, terminal."""
