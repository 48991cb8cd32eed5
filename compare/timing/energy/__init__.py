"""Modelled joules: coefficients × what is counted of a program; nothing here is measured."""
