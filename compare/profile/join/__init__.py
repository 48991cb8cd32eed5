"""Profile events joined to the collectives that they execute."""
