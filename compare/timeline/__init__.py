"""Timelines, measured or modelled: tracks of events, intervals, series."""
