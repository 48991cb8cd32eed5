"""Profiles read: XSpace files and Chrome traces, the platforms that wrote them, and their join with programs."""
