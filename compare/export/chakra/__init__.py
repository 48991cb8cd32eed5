"""A program as a Chakra trace, with the inputs that ASTRA-sim takes beside it."""
