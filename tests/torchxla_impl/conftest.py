"""PyTorch/XLA runs in processes of its own: one framework and one mesh each."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch_xla") else ["test_*.py"]
