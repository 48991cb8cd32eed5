"""Worker processes that compile, translate or run a program: libtpu aborts its process on bad input."""
