"""The PyTorch/XLA twin: a decoder, dense or of experts, partitioned by GSPMD from what `layout` pins."""
