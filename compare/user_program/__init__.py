"""A user's own program: read, compiled if necessary, saved."""
