"""What runs the cases of a sweep: this machine, or a Ray cluster."""
