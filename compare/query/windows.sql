-- Communications in order of start, on one device in one step; a stretch is all of them until the axes change.
WITH communications AS (
    SELECT
        e.run, e.phase, e.arm, e.cell, e.source, e.device, e.step, e.stands_for, e.axes,
        e.start_ns, e.duration_ns, e.start_ns + e.duration_ns AS stop_ns, e.payload_bytes,
        c.wire_bytes -- of one execution, mean over devices; of a measured program's unknown
    FROM events AS e
    LEFT JOIN collectives AS c
        ON (c.run, c.phase, c.arm, c.cell, c.name) = (e.run, e.phase, e.arm, e.cell, e.collective)
    WHERE e.role = 'communication' AND e.step >= 0 AND e.device >= 0
),
ordered AS (
    SELECT
        *,
        max(stop_ns) OVER (
            PARTITION BY run, phase, arm, cell, device, step, axes ORDER BY start_ns, duration_ns DESC
            ROWS UNBOUNDED PRECEDING
        ) AS reached_ns,
        lag(axes) OVER in_order AS axes_before
    FROM communications
    WINDOW in_order AS (PARTITION BY run, phase, arm, cell, device, step ORDER BY start_ns, duration_ns DESC)
),
numbered AS (
    SELECT
        *,
        lag(reached_ns) OVER in_order AS reached_before_ns,
        count(*) FILTER (axes IS DISTINCT FROM axes_before) OVER in_order AS stretch
    FROM ordered
    WINDOW in_order AS (PARTITION BY run, phase, arm, cell, device, step ORDER BY start_ns, duration_ns DESC)
)
SELECT
    run, phase, arm, cell, source, device, step, stands_for,
    axes_before AS from_axes,
    axes AS to_axes,
    start_ns - reached_before_ns AS interval_ns,
    sum(payload_bytes) OVER whole AS payload_bytes_after,
    (sum(wire_bytes) OVER whole)::DOUBLE AS wire_bytes_after
FROM numbered
WINDOW whole AS (PARTITION BY run, phase, arm, cell, device, step, stretch)
QUALIFY axes_before <> axes
