"""What the zoo's models are fed, as columns of a data set."""

_PARTS = ("indices", "values", "shape")


def columns(model, points):
    """By feed point and by feature: either is what a model may call it. points: {point: array}."""
    found = {}
    for point, array in points.items():
        base, _, part = point.rpartition("/")
        if base and part in _PARTS:
            if part == "values":
                rows = points[f"{base}/indices"][:, 0]
                count = int(points[f"{base}/shape"][0])
                found[base] = [array[rows == row].tolist() for row in range(count)]
        elif array.ndim:
            flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
            found[point] = flat.tolist()
    for one in model.said["inputs"] + model.said["labels"]:
        if one["point"] in found:
            found[one["feature"]] = found[one["point"]]
    return found
