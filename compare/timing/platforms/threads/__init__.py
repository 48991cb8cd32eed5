"""What the threads of a host show of devices that are the host itself."""
