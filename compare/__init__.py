"""What judges: it reads what the arms write, and imports neither of them."""
