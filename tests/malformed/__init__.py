"""Malformed datasets and what is expected of each; see README.md."""
import os
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
MADE = {}


class Made:
    """words: of the line in the log, for what cannot be opened; None: it can. Paths below the
    dataset's tree (or its virtual file's variables, for Zarr): `errors` cannot be read, `right` can
    be and have these bytes (None: any), `absent` are not there. nothing: no format knows it."""

    def __init__(self, name, write, words, errors, right, absent, nothing):
        self.name, self.write, self.words = name, write, words
        self.errors, self.right, self.absent = errors, right or {}, absent
        self.nothing = nothing


def made(name, words=None, errors=(), right=None, absent=(), nothing=False):
    """Decorator of a function that writes one at the path it is given."""
    def put(write):
        assert name not in MADE, name
        MADE[name] = Made(name, write, words, errors, right, absent, nothing)
        return write
    return put


# Files that were found: name in kept/, and what is expected as in Made.
KEPT = {
    # a group's B-tree leads to one symbol node twice, so that every member comes twice
    "hdf5-twice.h5": dict(right={".zgroup": None}),
}


def load():
    """All of them: {name: Made}."""
    from malformed import hdf5, others  # noqa: F401
    for name, expected in KEPT.items():
        if name not in MADE:
            made(name, **expected)(lambda path, n=name: shutil.copyfile(
                os.path.join(HERE, "kept", n), path))
    return MADE
