"""From paths on the command line to bytes and text: discovery, byte prefilter, decoding, suppression comments."""
