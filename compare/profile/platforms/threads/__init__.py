"""The threads of a host whose CPU is the devices."""
