"""libtpu's own pass dumps: an archive of them, and what each pass did to a collective."""
