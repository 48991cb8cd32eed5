"""The JAX twin: a decoder, dense or of experts, in Flax NNX, partitioned by XLA from what `layout` pins."""
