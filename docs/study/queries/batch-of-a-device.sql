-- What TorchXLA's program emits over what its plan requires, by whether a device's program holds one sequence or several.
WITH programs AS (
    SELECT f.model, f.mesh, f.phase, f.emitted_over_inherent, r.batch / (r.dp * r.ep * r.microbatches) AS sequences
    FROM "framework-induced" AS f
    JOIN runs AS r USING (run)
    WHERE f.arm = 'torchxla' AND f.cell = 'tpu' AND f.emitted_over_inherent IS NOT NULL
)
SELECT
    phase, sequences > 1 AS several, count(*) AS programs, count(DISTINCT model) AS models, max(sequences) AS most_sequences,
    min(emitted_over_inherent) AS least_over_inherent, max(emitted_over_inherent) AS most_over_inherent
FROM programs
GROUP BY ALL
ORDER BY phase DESC, several
