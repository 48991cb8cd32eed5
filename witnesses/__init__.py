"""Programs that other people wrote, for the same cases as the twins: one small adapter each.

The only room in which PyTorch and JAX meet.  `catalog.py` lists the witnesses; a door traces and lowers one.
"""
