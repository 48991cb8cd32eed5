"""Makes the study beside it: many cases compiled from one file, their data, and a text whose numbers come from them."""
