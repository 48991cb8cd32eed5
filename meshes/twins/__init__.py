"""What the twins share without a framework: the layout protocol, the worker protocol, prompts and their answers."""
