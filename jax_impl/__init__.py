"""The JAX twin: a Llama decoder in Flax NNX, partitioned by XLA from the shardings that `layout` pins."""
