"""The JAX twin: a decoder, dense or of experts, in Flax NNX, partitioned by XLA from what `layout` pins.

Both twins are one model in the words of `meshes.twins.layout`, file by file; what differs is the framework.
"""
