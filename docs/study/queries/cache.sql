-- What each way to write and read the cache costs a decode step (8 chips), and where all layers' caches are copied in each layer.
WITH copies AS (
    SELECT
        run, arm, cell,
        sum(executions) >= any_value(layers) AS of_any_in_each_layer,
        coalesce(sum(executions) FILTER (is_whole), 0) >= any_value(layers) AS in_each_layer,
        sum(time_ns) FILTER (is_whole) AS copy_ns, sum(memory_bytes) FILTER (is_whole) AS copy_bytes
    FROM (
        SELECT
            o.*, r.layers / r.pp AS layers,
            regexp_extract(o.shape, '\[(\d+),', 1)::BIGINT >= r.layers / r.pp AS is_whole -- of all layers, not of one
        FROM operations AS o -- the ten longest
        JOIN runs AS r USING (run)
        WHERE o.phase = 'decode' AND o.opcode = 'copy' AND array_to_string(o.tensors, ' ') LIKE '%cache.%'
    )
    GROUP BY ALL
),
programs AS (
    SELECT
        t.run, t.model, t.mesh, t.arm, t.cell, s.step_ns, t.emitted_over_inherent,
        CASE WHEN t.cell LIKE 'tpu+cache-%' THEN replace(t.cell, 'tpu+cache-', '') END AS way,
        coalesce(c.in_each_layer, false) AS in_each_layer, coalesce(c.of_any_in_each_layer, false) AS of_any_in_each_layer,
        c.copy_ns, c.copy_bytes
    FROM totals AS t
    JOIN times AS s
        ON (s.run, s.phase, s.arm, s.cell) = (t.run, t.phase, t.arm, t.cell)
        AND s.split_by = 'all' AND s.source = 'modelled'
    LEFT JOIN copies AS c ON (c.run, c.arm, c.cell) = (t.run, t.arm, t.cell)
    WHERE t.phase = 'decode' AND t.topology = 'v6e:2x4' AND t.batch = 8 AND t.seq = 1024
        AND t.model IN ('llama-3.1-8b', 'qwen3-4b')
        AND (t.cell IN ('tpu', 'tpu+unrolled', 'hf-torchxla', 'tunix+norm') OR t.cell LIKE 'tpu+cache-%')
),
drawn AS (
    SELECT run, arm, cell, errors, draw, drawn_ns
    FROM "step-draws"
    WHERE phase = 'decode' AND topology = 'v6e:2x4' AND batch = 8 AND seq = 1024 AND model IN ('llama-3.1-8b', 'qwen3-4b')
        AND cell IN ('tpu', 'tpu+cache-written-index')
),
-- In how many draws it is slower when it is written by index and then read.
shares AS (
    SELECT a.run, a.arm, a.errors, avg(CASE WHEN a.drawn_ns > b.drawn_ns THEN 1 ELSE 0 END) AS share
    FROM drawn AS a
    JOIN drawn AS b ON (b.run, b.arm, b.cell, b.errors, b.draw) = (a.run, a.arm, 'tpu', a.errors, a.draw)
    WHERE a.cell = 'tpu+cache-written-index'
    GROUP BY ALL
),
held AS (SELECT run, arm, min(share) AS slower_share FROM shares GROUP BY ALL),
compared AS (
    SELECT
        p.*, p.step_ns / d.step_ns AS step_times, d.step_ns AS default_step_ns, h.slower_share,
        d.emitted_over_inherent AS default_over_inherent
    FROM programs AS p
    JOIN programs AS d ON (d.run, d.arm, d.cell) = (p.run, p.arm, 'tpu')
    LEFT JOIN held AS h ON (h.run, h.arm) = (p.run, p.arm)
)
SELECT
    model, arm, mesh, any_value(default_step_ns) AS step_ns,
    max(step_times) FILTER (way = 'select') AS select_times, max(step_times) FILTER (way = 'slice') AS slice_times,
    max(step_times) FILTER (way = 'index') AS index_times, max(step_times) FILTER (way = 'written') AS written_times,
    max(step_times) FILTER (way = 'written-index') AS written_index_times,
    any_value(slower_share) AS slower_share,
    coalesce(string_agg(way, ', ' ORDER BY way) FILTER (in_each_layer AND way IS NOT NULL), 'none') AS copied_by,
    bool_or(in_each_layer) FILTER (cell = 'tpu') AS default_copies,
    coalesce(bool_or(in_each_layer) FILTER (way = 'index'), false) AS index_copies,
    bool_or(in_each_layer) FILTER (way = 'written-index') AS written_index_copies,
    max(copy_bytes) FILTER (way = 'written-index') AS written_index_copy_bytes,
    max(copy_ns) FILTER (way = 'written-index') AS written_index_copy_ns,
    max(step_times * default_step_ns) FILTER (way = 'written-index') AS written_index_step_ns,
    max(emitted_over_inherent / default_over_inherent) FILTER (way = 'index') AS index_sent_times,
    max(step_ns) FILTER (cell = 'tpu+unrolled') AS unrolled_step_ns,
    bool_or(of_any_in_each_layer) FILTER (cell = 'tpu+unrolled') AS unrolled_copies,
    max(step_ns) FILTER (cell IN ('hf-torchxla', 'tunix+norm')) AS witness_step_ns,
    bool_or(of_any_in_each_layer) FILTER (cell IN ('hf-torchxla', 'tunix+norm')) AS witness_copies
FROM compared
GROUP BY ALL
HAVING written_index_times IS NOT NULL
ORDER BY model, arm, mesh DESC
