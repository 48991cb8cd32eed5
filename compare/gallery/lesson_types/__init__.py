"""What a lesson is, and what came of its programs."""
