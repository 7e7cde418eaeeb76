"""A conversion's record of its result.

model         the records of manifest.json, written and read
model_json    model.json: the modules' parameters
transforms    the transforms of the values on their way
quantization  rows of 8-bit values
id_modes      how the target finds the row of an id
typed         records from YAML or JSON that anyone may have edited
"""
