# SPDX-License-Identifier: BSD-3-Clause
"""Files that the tests write: one function a feature, `@feature` puts it into FEATURES.

A generator gets the path to write and nothing else, writes the same values each time, and says
in its docstring what a reader could get wrong. Options that the mount needs come with it."""

FEATURES = {}


class Feature:
    def __init__(self, func, options, clients):
        self.name = func.__name__
        self.write = func
        self.options = options
        self.clients = clients  # of zarr, xarray, ncdump, gdal; zarr always


def feature(*options, clients=("zarr", "xarray")):
    """Decorator. options: -o options for the mount."""
    def put(func):
        assert func.__name__ not in FEATURES, func.__name__
        FEATURES[func.__name__] = Feature(func, options, clients)
        return func
    return put


def load():
    """All generators, imported."""
    from gen import attrs, dims, fills, filters, layouts, links, names, texts, types  # noqa: F401
    return FEATURES
