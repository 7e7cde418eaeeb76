"""Which cases of a parametrised module a run asks for."""


def asked(request):
    """[parameter] of the tests of the module that run, each once, in the order of the tests: the
    cases that a cluster is to train."""
    found = {}
    for item in request.session.items:
        if item.parent is request.node and hasattr(item, "callspec"):
            found.update(dict.fromkeys(item.callspec.params.values()))
    return list(found)
