"""Measured power and heat: what a profile or another tool recorded, joined to steps; nothing here is modelled."""
