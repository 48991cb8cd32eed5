"""ASTRA-sim's cycles: its rules of messages, chunks and queues, event by event, and the formulas they come to."""
