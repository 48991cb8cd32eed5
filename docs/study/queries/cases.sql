-- How many cases the study has, in how many a program failed, and how many combinations were refused, since they do not fit.
SELECT
    count(*) FILTER (status <> 'refused') AS cases,
    count(*) FILTER (status = 'refused') AS refused,
    count(DISTINCT model) AS models,
    count(*) FILTER (status = 'failed') AS failed,
    (SELECT list(DISTINCT devices ORDER BY devices) FROM runs) AS chips
FROM cases
