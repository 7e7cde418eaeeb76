"""Which cases of a parametrised module a run asks for."""


def asked(request):
    """[parameter] of the module's tests that run, each once, in order: what a cluster trains."""
    found = {}
    for item in request.session.items:
        if item.parent is request.node and hasattr(item, "callspec"):
            found.update(dict.fromkeys(item.callspec.params.values()))
    return list(found)
