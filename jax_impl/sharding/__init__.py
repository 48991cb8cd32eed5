"""Layouts: the files of this twin that touch JAX's sharding API."""
