"""The compiled program: made by libtpu, read from its text."""
