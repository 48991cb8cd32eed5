"""Reading compiled programs: HLO text or protobuf in, one row a collective out."""
