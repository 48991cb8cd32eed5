"""A timeline as one track per device, and times by device and step."""
