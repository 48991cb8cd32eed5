"""What is exported, and the folder that it is written to."""
