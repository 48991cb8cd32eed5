"""`python -m compare.sweep`: many cases at once."""
