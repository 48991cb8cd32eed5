"""Work: processes, cache, jobs, run folders, progress."""
