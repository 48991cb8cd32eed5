"""Replica groups, device numbering, and the mesh axes that groups run over."""
