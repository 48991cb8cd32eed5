"""What is split, over what, by which rule: no framework here, only words and numbers."""
