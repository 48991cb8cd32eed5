"""A timeline laid out for counting: one track a device, times by device and step."""
