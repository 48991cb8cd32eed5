"""How the partitioner decides: rules found out by compiling, each shown by two programs on either side of its border.

The rules were held against the partitioner's sources: openxla/shardy (propagation) and openxla/xla (sharding
propagation, and the SPMD partitioner's handling of a dot).
"""

from compare.gallery.lessons.partitioner.heads import HEADS
from compare.gallery.lessons.partitioner.operands import OPERANDS
from compare.gallery.lessons.partitioner.propagation import PROPAGATION
from compare.gallery.lessons.partitioner.tokens import TOKENS

PARTITIONER = (*PROPAGATION, *TOKENS, *OPERANDS, *HEADS)
