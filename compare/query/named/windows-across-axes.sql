-- How long the network rests between the traffic of one parallelism and that of another, and what then follows.
WITH following AS (
    SELECT
        run, phase, arm, cell, source, from_axes, to_axes,
        -- Until the axes change again; a device counts as often as it stands for one.
        quantile_cont(wire_bytes_after, 0.5) AS median_wire_bytes_after,
        sum(wire_bytes_after) AS wire_bytes_after
    FROM windows, range(stands_for)
    GROUP BY ALL
)
SELECT
    i.run, i.model, i.mesh, i.topology, i.phase, i.arm, i.cell, i.source, i.from_axes, i.to_axes,
    i.n, -- of all devices and steps
    i.median_ns, i.p95_ns, i.iqr_ns, -- negative where the two overlap
    f.median_wire_bytes_after,
    f.wire_bytes_after / (t.devices * t.steps) AS step_wire_bytes_after -- one device, one step: a mean
FROM intervals AS i
LEFT JOIN following AS f USING (run, phase, arm, cell, source, from_axes, to_axes)
LEFT JOIN times AS t
    ON (t.run, t.phase, t.arm, t.cell, t.source) = (i.run, i.phase, i.arm, i.cell, i.source) AND t.split_by = 'all'
WHERE i.from_axes <> i.to_axes
ORDER BY i.run, i.phase DESC, i.arm, i.cell, i.source, i.from_axes, i.to_axes
