"""Metrics of the network: bandwidth, bytes on links, messages, gaps."""
