# SPDX-License-Identifier: BSD-3-Clause
"""Zarr trees as a web server has them: copies of a tree, and, because a web server lists
nothing, its documents in one where nothing else says what there is (NCZarr's groups do)."""
import json
import os
import shutil

DOCS = (".zarray", ".zgroup", ".zattrs")


def documents(tree):
    """{key: document} of Zarr v2, {key: zarr.json} of v3."""
    found = {}
    for folder, dirs, files in os.walk(tree):
        dirs.sort()
        for name in sorted(files):
            if name in DOCS or name == "zarr.json":
                key = os.path.relpath(os.path.join(folder, name), tree)
                with open(os.path.join(folder, name), "rb") as f:
                    try:
                        found[key] = json.loads(f.read())
                    except ValueError:
                        pass
    return found


def says_all(docs):
    """Whether the root is an array, or names what is in it."""
    root = docs.get("zarr.json", docs.get(".zgroup", {}))
    if ".zarray" in docs or root.get("node_type") == "array":
        return True
    everything = dict(root, **docs.get(".zattrs", {}), **root.get("attributes", {}))
    return any(k.lower() == "_nczarr_group" for k in everything)


def serve(tree, folder, name):
    """A copy below folder/name; returns that path."""
    top = os.path.join(folder, name)
    docs = documents(tree)
    done = os.path.exists(os.path.join(tree, ".zmetadata")) or os.path.exists(
        os.path.join(tree, ".nczarr")) or says_all(docs)
    shutil.copytree(tree, top, symlinks=True)
    if done:
        return top
    if "zarr.json" in docs:
        root = docs.pop("zarr.json")
        root["consolidated_metadata"] = {
            "kind": "inline", "must_understand": False,
            "metadata": {os.path.dirname(k): v for k, v in docs.items()}}
        write(os.path.join(top, "zarr.json"), root)
    else:
        write(os.path.join(top, ".zmetadata"),
              {"zarr_consolidated_format": 1,
               "metadata": {k: v for k, v in docs.items() if not k.endswith("zarr.json")}})
    return top


def write(path, document):
    with open(path, "w") as f:
        json.dump(document, f)
