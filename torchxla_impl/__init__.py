"""The PyTorch/XLA twin: a decoder, dense or of experts, partitioned by GSPMD from what `layout` pins.

Both twins are one model in the words of `meshes.twins.layout`, file by file; what differs is the framework.
"""
