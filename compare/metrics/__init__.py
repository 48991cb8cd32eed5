"""Metrics of a timeline: frames for figures, plain values for reports.  Definitions: docs/metrics.md."""
