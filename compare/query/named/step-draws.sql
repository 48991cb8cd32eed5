-- What the model's errors leave of each modelled step: 1,000 draws, with errors of each program's own and shared ones.
WITH widths AS (SELECT generation, part, width FROM "model-errors" WHERE width IS NOT NULL),
-- What no row is of takes the widest: compute that of compute, a collective that of all.
widest AS (SELECT max(width) FILTER (part = 'matmul') AS of_compute, max(width) AS of_all FROM widths),
-- Exposed time by kind of collective; compute as the least that the case needs, and other (docs/metrics.md, section 16).
floors AS (
    SELECT run, phase, arm, cell, coalesce(1 / compute_over_floor, 0) AS share -- where it is unknown all compute is other
    FROM totals
),
parts AS (
    SELECT
        t.*,
        unnest(CASE split_by
            WHEN 'kind' THEN [{'part': t.part, 'ns': exposed_ns}]
            ELSE [
                {'part': 'matmul', 'ns': compute_ns * least(coalesce(share, 0), 1)},
                {'part': 'other', 'ns': compute_ns * greatest(1 - coalesce(share, 0), 0)}
            ]
        END) AS piece
    FROM times AS t
    LEFT JOIN floors USING (run, phase, arm, cell)
    WHERE t.split_by IN ('kind', 'all') AND t.source = 'modelled'
),
drawn AS (
    SELECT
        p.*, e.errors, d.draw,
        coalesce(w.width, CASE WHEN piece.part IN ('matmul', 'other') THEN of_compute ELSE of_all END) AS width,
        CASE e.errors WHEN 'own' THEN concat_ws('/', run, phase, arm, cell, piece.part, draw)
        ELSE concat_ws('/', piece.part, draw) END AS seed
    FROM parts AS p
    CROSS JOIN widest
    -- Nothing between slices was ever held against a measurement.
    LEFT JOIN widths AS w
        ON (w.generation, w.part) = (p.generation, piece.part) AND (piece.part = 'matmul' OR NOT topology SIMILAR TO '\d+x.*')
    CROSS JOIN (VALUES ('own'), ('shared')) AS e(errors)
    CROSS JOIN range(1, 1001) AS d(draw)
    WHERE piece.ns > 0
)
SELECT
    run, model, mesh, topology, devices, dtype, style, loop, attention, batch, seq, phase, arm, cell, errors, draw,
    -- A normal variate of each seed (Box and Muller): the same on every machine.
    round(sum(piece.ns * exp(
        width * sqrt(-2 * ln((md5_number_lower(seed)::DOUBLE + 1) / 18446744073709551616))
        * cos(2 * pi() * md5_number_upper(seed)::DOUBLE / 18446744073709551616)
    )), 3) AS drawn_ns, -- rounded: a sum's last digit depends on its order
    round(sum(piece.ns), 3) AS step_ns,
    round(coalesce(sum(piece.ns) FILTER (piece.part NOT IN ('matmul', 'other')), 0), 3) AS exposed_ns,
    round(coalesce(sum(piece.ns) FILTER (piece.part = 'other'), 0), 3) AS other_compute_ns
FROM drawn
GROUP BY ALL
ORDER BY run, phase DESC, arm, cell, errors, draw
