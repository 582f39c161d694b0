"""Facts: one pass over a file, from a syntax tree to small serialisable data. Everything later sees only these."""
