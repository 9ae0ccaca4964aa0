"""HDF5 files by libhdf5 in which one structure was changed afterwards. Offsets are those of the
HDF5 File Format Specification; files of the earliest format, which has no checksums, but where a
structure of the latest is the point."""
import struct

import numpy as np

from malformed import made

N = 8
V = np.arange(100 * N, dtype="<i4")
GOOD = V[:N].tobytes()
FFFF = b"\xff" * 8


def base(path, latest=False, **more):
    """/good of one chunk and /v of a hundred, in a B-tree of two levels; /g, empty."""
    import h5py
    with h5py.File(path, "w", libver="latest" if latest else "earliest") as f:
        f.create_dataset("good", data=V[:N], chunks=(N,))
        f.create_dataset("v", data=V, **dict(dict(chunks=(N,)), **more))
        f.create_group("g")


def read(path):
    with open(path, "rb") as f:
        return bytearray(f.read())


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def number(data, at, size=8):
    return int.from_bytes(data[at:at + size], "little")


def all_of(data, signature):
    found, at = [], data.find(signature)
    while at >= 0:
        found.append(at)
        at = data.find(signature, at + 1)
    return found


def trees(data, kind, level):
    """B-tree nodes of version 1: kind 0 of groups, 1 of chunks."""
    return [at for at in all_of(data, b"TREE") if data[at + 4] == kind and data[at + 5] == level]


def leaf_of(data):
    """The node with the first chunks of /v: that of most entries, least offset."""
    nodes = [at for at in trees(data, 1, 0) if number(data, at + 6, 2) > 1]
    return min(nodes, key=lambda at: number(data, at + 24 + 8))


KEY = 24  # of a chunk of one dimension: size, mask, offset, offset in the element


def key(node, i):
    return node + 24 + i * (KEY + 8)


def child(node, i):
    return key(node, i) + KEY


def changed(path, change, **more):
    base(path, **more)
    data = read(path)
    change(data)
    write(path, data)


# ---- the index of chunks ----

GOOD_REST = {"good/0": GOOD, "v/99": V[-N:].tobytes()}
PACKED_REST = {"good/0": GOOD, "v/99": None}


@made("chunks-cycle.h5", errors=("v/0", "v/99"), right={"good/0": GOOD})
def chunks_cycle(path):
    """The root of an index is its own child."""
    def change(data):
        root = trees(data, 1, 1)[0]
        data[child(root, 0):child(root, 0) + 8] = struct.pack("<Q", root)
    changed(path, change)


@made("chunks-child-outside.h5", errors=("v/0", "v/99"), right={"good/0": GOOD})
def chunks_child_outside(path):
    def change(data):
        at = child(trees(data, 1, 1)[0], 0)
        data[at:at + 8] = struct.pack("<Q", 1 << 62)
    changed(path, change)


@made("chunks-level.h5", errors=("v/0", "v/99"), right={"good/0": GOOD})
def chunks_level(path):
    """A leaf that says it is 255 levels up."""
    def change(data):
        data[leaf_of(data) + 5] = 255
    changed(path, change)


@made("chunks-count.h5", errors=("v/0", "v/99"), right={"good/0": GOOD})
def chunks_count(path):
    """More entries than a node has."""
    def change(data):
        leaf = leaf_of(data)
        data[leaf + 6:leaf + 8] = b"\xff\xff"
    changed(path, change)


@made("chunk-beyond.h5", errors=("v/1",), right=dict(GOOD_REST, **{"v/0": GOOD}))
def chunk_beyond(path):
    """One chunk behind the end of the file."""
    def change(data):
        at = child(leaf_of(data), 1)
        data[at:at + 8] = struct.pack("<Q", len(data) - 4)
    changed(path, change)


@made("chunk-far-beyond.h5", errors=("v/1",), right=GOOD_REST)
def chunk_far_beyond(path):
    def change(data):
        at = child(leaf_of(data), 1)
        data[at:at + 8] = struct.pack("<Q", 2**64 - 2)
    changed(path, change)


@made("chunk-overlap.h5", right=dict(GOOD_REST, **{"v/1": V[:N].tobytes()}))
def chunk_overlap(path):
    """Two chunks in one place: nothing can be known to be wrong."""
    def change(data):
        leaf = leaf_of(data)
        data[child(leaf, 1):child(leaf, 1) + 8] = data[child(leaf, 0):child(leaf, 0) + 8]
    changed(path, change)


def chunk_size(size):
    def change(data):
        at = key(leaf_of(data), 1)
        data[at:at + 4] = struct.pack("<I", size)
    return change


@made("chunk-size-0.h5", right=dict(PACKED_REST, **{"v/1": b""}))
def chunk_size_0(path):
    """A compressed chunk of no bytes: passed on as it is, and whoever inflates it says so."""
    changed(path, chunk_size(0), compression="gzip")


@made("chunk-size-max.h5", errors=("v/1",), right=PACKED_REST)
def chunk_size_max(path):
    """A compressed chunk of 2^32 - 1 bytes."""
    changed(path, chunk_size(2**32 - 1), compression="gzip")


@made("chunk-mask.h5", errors=("v/1",), right=PACKED_REST)
def chunk_mask(path):
    """A chunk for which all 32 filters were skipped, but its bytes are compressed."""
    def change(data):
        at = key(leaf_of(data), 1) + 4
        data[at:at + 4] = b"\xff" * 4
    changed(path, change, compression="gzip")


@made("chunk-twice.h5", errors=("v/0", "v/99"), right={"good/0": GOOD})
def chunk_twice(path):
    """Two entries for one chunk: which of them holds?"""
    def change(data):
        leaf = leaf_of(data)
        at = key(leaf, 1) + 8
        data[at:at + 8] = bytes(8)
    changed(path, change)


# ---- groups ----

@made("groups-cycle.h5", right={"good/0": GOOD, "g/.zgroup": None},
      absent=("g/again", "g/root", "g/loop"))
def groups_cycle(path):
    """Groups that are in themselves: by hard links, by a soft one."""
    import h5py
    base(path)
    with h5py.File(path, "r+") as f:
        f["g/again"] = f["g"]
        f["g/root"] = f["/"]
        f["g/loop"] = h5py.SoftLink("/g/loop")


@made("group-tree-cycle.h5", right={".zgroup": None}, absent=("good", "v"))
def group_tree_cycle(path):
    """The B-tree of the root group: its node says that its child is itself. A note says that
    members are left out."""
    def change(data):
        node = trees(data, 0, 0)[0]
        data[node + 32:node + 40] = struct.pack("<Q", node)
    changed(path, change)


@made("group-twice.h5", right={"good/0": GOOD, "v/99": V[-N:].tobytes()})
def group_twice(path):
    """Every member of the root group comes twice: its B-tree leads to one node of symbols from two
    entries."""
    def change(data):
        node = next(at for at in trees(data, 0, 0) if number(data, at + 6, 2) == 1)
        data[node + 6:node + 8] = struct.pack("<H", 2)
        data[node + 40:node + 56] = data[node + 24:node + 40]
    changed(path, change)


@made("heap-name.h5", right={".zgroup": None}, absent=("good", "v"))
def heap_name(path):
    """The names of the root group are behind the end of the file."""
    def change(data):
        heap = all_of(data, b"HEAP")[0]
        data[heap + 24:heap + 32] = struct.pack("<Q", 1 << 40)
    changed(path, change)


@made("attributes-twice.h5", right={"good/.zattrs": None, "good/0": GOOD})
def attributes_twice(path):
    """Two attributes of one name: the document must not have it twice."""
    import h5py
    base(path)
    with h5py.File(path, "r+") as f:
        f["good"].attrs["first_"] = 1
        f["good"].attrs["second"] = 2
    data = read(path)
    at = data.find(b"second\0")
    data[at:at + 7] = b"first_\0"
    write(path, data)


# ---- superblock, headers ----

def at_superblock(offset, value):
    def change(data):
        data[offset:offset + len(value)] = value
    return change


@made("eof-larger.h5", words=("eof-larger", "truncated"))
def eof_larger(path):
    """The end of the file is far behind its end."""
    changed(path, at_superblock(40, struct.pack("<Q", 1 << 50)))


@made("eof-0.h5", words=("eof-0",))
def eof_0(path):
    changed(path, at_superblock(40, bytes(8)))


@made("base-address.h5", words=("base-address",))
def base_address(path):
    """The base address is not where the superblock is."""
    changed(path, at_superblock(24, struct.pack("<Q", 1 << 63)))


@made("offset-size.h5", words=("offset-size",))
def offset_size(path):
    """Addresses of 255 bytes."""
    changed(path, at_superblock(13, b"\xff"))


@made("superblock-version.h5", words=("superblock-version",))
def superblock_version(path):
    changed(path, at_superblock(8, b"\x09"))


@made("root-nowhere.h5", words=("root-nowhere",))
def root_nowhere(path):
    """The root group is nowhere."""
    changed(path, at_superblock(64, FFFF))


@made("root-is-superblock.h5", words=("root-is-superblock",))
def root_is_superblock(path):
    changed(path, at_superblock(64, bytes(8)))


@made("checksum.h5", words=("checksum",))
def checksum(path):
    """The checksum of the latest superblock is wrong."""
    changed(path, at_superblock(44, b"\0\0\0\1"), latest=True)


@made("continuation-cycle.h5", right={"good/0": GOOD}, absent=("v/.zattrs",))
def continuation_cycle(path):
    """A header whose continuation is its own first block."""
    import h5py
    base(path)
    with h5py.File(path, "r+") as f:
        for i in range(12):
            f["v"].attrs[f"a{i}"] = np.arange(10)
        header = h5py.h5o.get_info(f["v"].id).addr
    data = read(path)
    at, size = header + 16, number(data, header + 8, 4)
    end = at + size
    while at < end:
        if number(data, at, 2) == 0x10:
            data[at + 8:at + 24] = struct.pack("<QQ", header + 16, size)
            break
        at += 8 + number(data, at + 2, 2)
    else:
        raise AssertionError("the header has no continuation")
    write(path, data)
