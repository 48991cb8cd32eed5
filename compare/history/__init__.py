"""`python -m compare.history`: what each compiler pass did to a collective."""
