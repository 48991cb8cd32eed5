"""The PyTorch/XLA twin: a Llama decoder as `nn.Module`s, partitioned by GSPMD from the shardings that `layout` pins."""
