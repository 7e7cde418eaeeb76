"""A conversion's record of its result.

manifest      the records of manifest.json, written and read
model_json    model.json: the modules' parameters
dynamicemb    the optimizer's settings for NVIDIA's dynamicemb
transforms    the transforms of the values on their way
quantization  rows of 8-bit values
id_modes      how the target finds the row of an id
naming        names of tables, and of a hash table's ids
state_names   names of optimizer states
typed         records from YAML or JSON that anyone may have edited
"""
