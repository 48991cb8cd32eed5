"""A user's own program: read, compiled if it is not, saved."""
