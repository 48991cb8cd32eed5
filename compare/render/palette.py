"""The colours of verdicts and of time, one for each in terminal, page and figures."""

VERDICTS = {"inherent": "#3d7ab8", "inflated": "#dba514", "induced": "#bf4055"}
"""Distinguishable in red-green colour blindness, and in greyscale.  The page has the same, lighter on dark."""

COMPUTE, COPIES, UNCLEAR, IDLE = "#98a2af", "#7d5ba6", "#5d6673", "#eceef1"
"""Of time: compute; waits for local copies; communication of unknown verdict; idle."""

TRACE_NAMES = {"inherent": "rail_response", "inflated": "yellow", "induced": "terrible", "unknown": "grey"}
"""The nearest of the names that chrome://tracing knows (`cname`); Perfetto colours by a slice's name."""

ARMS = (("#147a70", "o", "-"), ("#b8442c", "s", "--"), ("#6a56a5", "^", ":"), ("#5d6673", "D", "-."))
"""Colour, marker and line of the first arm, the second …; no colour is a verdict's, lines differ without colour."""


def arm_style(number: int) -> tuple[str, str, str]:
    """That of an arm by its number; where there are more, they begin anew."""
    return ARMS[number % len(ARMS)]
