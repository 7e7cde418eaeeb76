"""The models, a family a module; `registry` names them."""
