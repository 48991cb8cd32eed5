"""The decoder: model, layers, cache, pipeline, one inference step."""
