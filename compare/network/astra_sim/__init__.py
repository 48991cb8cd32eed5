"""ASTRA-sim's cycles: its rules of messages, chunks and queues played event by event, and the formulas they come to."""
