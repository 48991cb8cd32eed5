"""`xplane.pb` profiles, read as columns with protobuf alone."""
