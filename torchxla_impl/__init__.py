"""The PyTorch/XLA twin: one model with JAX's in the words of `meshes.twins.layout`, file by file; frameworks differ.

A decoder, dense or of experts, partitioned by GSPMD from what `layout` pins.
"""
