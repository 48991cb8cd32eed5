"""`python -m compare.teach`: lessons and a quiz on which collectives a sharding produces."""
