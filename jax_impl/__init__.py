"""The JAX twin: one model with PyTorch/XLA's in the words of `meshes.twins.layout`, file by file; frameworks differ.

A decoder, dense or of experts, in Flax NNX, partitioned by XLA from what `layout` pins.
"""
