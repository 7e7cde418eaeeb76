"""What a conversion wrote: the manifest, its types, and the transforms that it names."""
