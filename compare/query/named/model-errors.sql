-- The modelled time held against published measurements, and how wide the draws of `step-draws` are for it.
WITH published(generation, part, measurements, median_share, largest_share) AS (
    VALUES -- docs/model.md, on a device: the median of |error| and the largest error; `matmul` is of products
        ('tpu7x', 'all-gather', 5, 0.01, -0.03),
        ('tpu7x', 'all-reduce', 3, 0.49, -0.65),
        ('tpu7x', 'matmul', 9, 0.16, 0.28),
        ('v5e', 'all-gather', 1, 0.25, 0.25),
        ('v5p', 'all-reduce', 4, 0.42, -0.47),
        ('v5p', 'all-to-all', 4, 0.18, -0.23),
        ('v5p', 'collective-permute', 1, 0.00, 0.00),
        ('v6e', 'all-reduce', 14, 0.18, -0.38),
        ('v6e', 'all-to-all', 15, 0.08, -0.34),
        ('v6e', 'collective-permute', 1, 0.01, 0.01),
        ('v6e', 'matmul', 3, 0.09, -0.12)
),
-- Of the logarithm of true / modelled time, a standard deviation; of fewer than three measurements none.
measured AS (
    SELECT
        *,
        CASE WHEN measurements >= 3 THEN greatest(-ln(1 - median_share) / 0.6745, abs(ln(1 + largest_share)) / 2) END
            AS width
    FROM published
)
SELECT *, exp(0.6745 * width) AS factor -- half of the draws are off by more
FROM measured
ORDER BY generation DESC, part
