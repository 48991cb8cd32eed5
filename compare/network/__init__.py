"""What-if networks: machines of rings, switches and full meshes, and what a collective costs on them."""
