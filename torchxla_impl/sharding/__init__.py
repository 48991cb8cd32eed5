"""Layouts: the files of this twin that touch PyTorch/XLA's sharding API."""
