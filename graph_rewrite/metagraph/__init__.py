"""`semisync rewrite`: a whole MetaGraph in, one that trains semi-synchronously out."""
