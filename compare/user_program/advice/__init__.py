"""What to write instead, of collectives that look like one whose remedy was compiled: no model need be known."""
