"""Questions that the gallery's lessons answer: drawn by a seed, compiled when they are asked."""
