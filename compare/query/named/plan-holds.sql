-- How sure the fastest plan is: in how many draws of the model's errors it stays so, and at half and twice the link rate.
WITH placed AS (
    SELECT
        model, topology, devices, dtype, style, loop, attention, batch, seq, phase, arm, cell, errors, mesh, step_ns, exposed_ns,
        other_compute_ns, drawn_ns,
        min(drawn_ns) OVER (
            PARTITION BY model, topology, devices, dtype, style, loop, attention, batch, seq, phase, arm, cell, errors, draw
        ) AS least_ns,
        -- Plans that are equal in a draw share it.
        count(*) OVER (
            PARTITION BY model, topology, devices, dtype, style, loop, attention, batch, seq, phase, arm, cell, errors, draw,
            drawn_ns
        ) AS equals
    FROM "step-draws"
),
shares AS (
    SELECT
        * EXCLUDE (drawn_ns, least_ns, equals), avg(CASE WHEN drawn_ns = least_ns THEN 1 / equals ELSE 0 END) AS share
    FROM placed
    GROUP BY ALL
),
plans AS (
    SELECT
        * EXCLUDE (errors, share), min(share) AS holds_share,
        min(share) FILTER (errors = 'own') AS own_errors_share, min(share) FILTER (errors = 'shared') AS shared_errors_share
    FROM shares
    GROUP BY ALL
)
SELECT
    model, topology, devices, dtype, style, loop, attention, batch, seq, phase, arm, cell,
    count(*) OVER ranking AS plans,
    mesh, step_ns,
    lead(mesh) OVER by_step AS next_mesh,
    lead(step_ns) OVER by_step / step_ns AS next_over_fastest,
    holds_share, -- the least of the next two
    own_errors_share, shared_errors_share,
    arg_min(mesh, step_ns + exposed_ns) OVER ranking AS mesh_at_half_rate, -- of the links: exposed time is twice as long
    arg_min(mesh, step_ns - exposed_ns / 2) OVER ranking AS mesh_at_double_rate,
    arg_min(mesh, step_ns - other_compute_ns / 2) OVER ranking AS mesh_at_half_other -- compute beyond its floor halved
FROM plans
WINDOW
    ranking AS (
        PARTITION BY model, topology, devices, dtype, style, loop, attention, batch, seq, phase, arm, cell
    ),
    by_step AS (ranking ORDER BY step_ns, mesh)
QUALIFY row_number() OVER by_step = 1
ORDER BY model, topology, dtype, style, loop, attention, batch, seq, phase DESC, arm, cell
