"""What the tests of a module are asked with: a cluster trains the cases that are to be tested."""


def asked(request):
    """[parameter] of the tests of the module that run, each once, in the order of the tests."""
    found = {}
    for item in request.session.items:
        if item.parent is request.node and hasattr(item, "callspec"):
            found.update(dict.fromkeys(item.callspec.params.values()))
    return list(found)
