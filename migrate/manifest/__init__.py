"""What a conversion wrote.

model         the records of manifest.json, written and read
model_json    model.json: what builds the modules
transforms    what happened to the values on their way
quantization  rows of 8-bit values
id_modes      how the target finds the row of an id
typed         records from YAML or JSON that anyone may have edited
"""
