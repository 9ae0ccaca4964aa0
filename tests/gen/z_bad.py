# SPDX-License-Identifier: BSD-3-Clause
"""Damaged Zarr stores: one function a damage. A store holds /good, which is always right, and /v,
which is damaged: both are three chunks of 4096 int32, which are pages, since a page is the least
that can be an error; /v of kind "texts" is three chunks of two texts.

A damage is either refused, with words that the one line of the refusal has to contain, or it is
shown: then the chunks of /v named in `chunks` cannot be read and everything else can. `beside` are
chunks that share a page with these, and may be errors. `hide` says that unsupported=skip shows the
rest of a store that is refused."""
import json
import os
import shutil
import struct
import zipfile
import zlib

import numpy as np

from gen.trees import archive, array, group, put, ramp

BAD = {}
WORDS = ["", "a", "grün", "word", "x y", "last"]
N = 4096


class Bad:
    def __init__(self, func, kind, refused, chunks, hide, ending, beside, options):
        self.name = func.__name__
        self.damage = func
        self.kind = kind
        self.refused = refused
        self.chunks = chunks
        self.hide = hide
        self.ending = ending
        self.beside = beside
        self.options = options
        self.length = 2 if kind == "texts" else N  # of a chunk

    def write(self, path):
        """The whole store, damaged; for archives the damage gets the path of the archive."""
        if self.ending == ".zarr":
            base(path, self.kind)
            self.damage(path)
            return
        folder = path + ".tmp"
        base(folder, self.kind)
        archive(folder, path)
        shutil.rmtree(folder)
        self.damage(path)


def bad(kind="raw", refused=(), chunks=(), hide=True, ending=".zarr", beside=(), options=()):
    """Decorator. refused: words of the message; or chunks: those of /v that are errors.
    options: -o options for the mount."""
    def add(func):
        assert func.__name__ not in BAD, func.__name__
        words = (refused,) if isinstance(refused, str) else refused
        BAD[func.__name__] = Bad(func, kind, words, chunks, hide and bool(words), ending, beside,
                                 options)
        return func
    return add


def values(kind):
    """What /v holds where it is not damaged."""
    return np.array(WORDS, object) if kind == "texts" else ramp((3 * N,), "<i4")


def base(path, kind):
    """A store with nothing wrong in it."""
    from gen import z_three
    v = values("raw")
    more = {"attrs": {"_ARRAY_DIMENSIONS": ["n"]}}
    if kind.startswith("v3"):
        z_three.group3(path)
        z_three.array3(path, "good", v, (N,), z_three.LITTLE, z_three.raw, dims=["n"])
        {"v3": three, "v3crc": three_crc, "v3shard": three_shard}[kind](path, v)
        return
    group(path, {"title": "damaged"})
    array(path, "good", v, (N,), **more)
    if kind == "raw":
        array(path, "v", v, (N,), **more)
    elif kind == "zlib":
        array(path, "v", v, (N,), chunk_bytes=zlib.compress, compressor={"id": "zlib", "level": 1},
              **more)
    elif kind == "blosc":
        import numcodecs
        codec = numcodecs.Blosc("lz4", 5, 1)
        array(path, "v", v, (N,), chunk_bytes=lambda b: bytes(codec.encode(np.frombuffer(b, "i4"))),
              compressor=codec.get_config(), **more)
    elif kind == "crc":
        import numcodecs
        codec = numcodecs.CRC32()
        array(path, "v", v, (N,), chunk_bytes=lambda b: bytes(codec.encode(b)),
              filters=[{"id": "crc32"}], **more)
    elif kind == "texts":
        import numcodecs
        array(path, "v", np.zeros(6, "i1"), (2,), {"_ARRAY_DIMENSIONS": ["m"]}, dtype="|O",
              filters=[{"id": "vlen-utf8"}], fill_value="")
        for i in range(3):
            part = np.array(WORDS[2 * i:2 * i + 2], object)
            put(path, f"v/{i}", bytes(numcodecs.VLenUTF8().encode(part)))


def three(path, v):
    from gen import z_three
    z_three.array3(path, "v", v, (N,), z_three.LITTLE, z_three.raw, dims=["n"])


def three_crc(path, v):
    from gen import z_three
    z_three.array3(path, "v", v, (N,), z_three.LITTLE + [{"name": "crc32c"}],
                   lambda a: z_three.with_crc(a.tobytes()), dims=["n"])


def three_shard(path, v):
    """One shard of four inner chunks, the last of which is beyond the end of the array."""
    from gen import z_three
    z_three.array3(path, "v", v, (4 * N,), [z_three.sharding((N,), z_three.LITTLE)],
                   lambda a: z_three.shard(a, (N,), z_three.raw, False), dims=["n"])


def meta(path, key="v/.zarray", drop=(), **change):
    """Change members of a document."""
    full = os.path.join(path, key)
    with open(full, encoding="utf-8") as f:
        doc = json.load(f)
    doc.update(change)
    for name in drop:
        del doc[name]
    with open(full, "w", encoding="utf-8") as f:
        json.dump(doc, f)


def text(path, key, old, new):
    """Replace text of a document: what json.dump would not write."""
    full = os.path.join(path, key)
    with open(full, "rb") as f:
        data = f.read()
    assert old in data, (key, old)
    with open(full, "wb") as f:
        f.write(data.replace(old, new, 1))


def chunk(path, change, key="v/1"):
    """Change the bytes of a chunk."""
    full = os.path.join(path, key)
    with open(full, "rb") as f:
        data = f.read()
    with open(full, "wb") as f:
        f.write(change(data))


def instead(path, make, key="v/1"):
    """Something else in a file's place."""
    full = os.path.join(path, key)
    os.unlink(full)
    make(full)


def flipped(data, at=-1):
    out = bytearray(data)
    out[at] ^= 0x55
    return bytes(out)


# ---- documents of the root ----

@bad(refused=".zgroup", hide=False)
def root_no_json(path):
    put(path, ".zgroup", b'{"zarr_format": ')


@bad(refused=".zgroup", hide=False)
def root_list(path):
    put(path, ".zgroup", [])


@bad(refused=".zgroup", hide=False)
def root_format(path):
    put(path, ".zgroup", {"zarr_format": 7})


@bad(refused=".zattrs", hide=False)
def root_attributes(path):
    put(path, ".zattrs", b'{"a": }')


@bad(refused=".zmetadata", hide=False)
def consolidated_no_json(path):
    """.zmetadata is there and cannot be read: what it would say is not guessed."""
    for key in (".zgroup", ".zattrs", "v/.zarray", "v/.zattrs", "good/.zarray", "good/.zattrs"):
        os.unlink(os.path.join(path, key))
    put(path, ".zmetadata", b"\xff\xfe not JSON")


@bad(refused=".zattrs", hide=False)
def nested_deeply(path):
    put(path, ".zattrs", b'{"a": ' + b"[" * 100000 + b"]" * 100000 + b"}")


# ---- documents of an array ----

@bad(refused="v/.zarray")
def array_no_json(path):
    put(path, "v/.zarray", b"hello")


@bad(refused="v/.zarray")
def array_empty(path):
    put(path, "v/.zarray", b"")


@bad(refused="v/.zarray")
def array_list(path):
    put(path, "v/.zarray", [1, 2])


@bad(refused="v/.zarray")
def array_utf8(path):
    text(path, "v/.zarray", b'"order"', b'"or\xffder"')


@bad(refused="v/.zarray")
def twice_a_key(path):
    text(path, "v/.zarray", b'"shape": [12288]', b'"shape": [12288], "shape": [7]')


@bad(refused=("v/.zarray", "shape"))
def no_shape(path):
    meta(path, drop=["shape"])


@bad(refused=("v/.zarray", "chunks"))
def no_chunks(path):
    meta(path, drop=["chunks"])


@bad(refused=("v/.zarray", "dtype"))
def no_dtype(path):
    meta(path, drop=["dtype"])


@bad(refused=("v/.zarray", "shape"))
def shape_text(path):
    meta(path, shape="12288")


@bad(refused=("v/.zarray", "shape"))
def shape_negative(path):
    meta(path, shape=[-12288])


@bad(refused=("v/.zarray", "shape"))
def shape_fraction(path):
    meta(path, shape=[12288.5])


@bad(refused=("v/.zarray", "shape"))
def shape_nan(path):
    text(path, "v/.zarray", b'"shape": [12288]', b'"shape": [NaN]')


@bad(refused=("v/.zarray", "shape"))
def shape_huge(path):
    text(path, "v/.zarray", b'"shape": [12288]', b'"shape": [1e400]')


@bad(refused="v/.zarray")
def shape_overflow(path):
    meta(path, shape=[2**62, 2**62], chunks=[2, 2])
    put(path, "v/.zattrs", {})


@bad(refused="v/.zarray")
def shape_beyond(path):
    meta(path, shape=[2**64])


@bad(refused=("v/.zarray", "chunks"))
def chunk_rank(path):
    meta(path, chunks=[4096, 3])


@bad(refused=("v/.zarray", "chunks"))
def chunk_zero(path):
    meta(path, chunks=[0])


@bad(refused=("v/.zarray", "chunks"))
def chunk_negative(path):
    meta(path, chunks=[-4096])


@bad(refused="v/.zarray")
def chunk_overflow(path):
    meta(path, shape=[2**40, 2**40], chunks=[2**40, 2**40])
    put(path, "v/.zattrs", {})


@bad(refused=("v/.zarray", "nosuchcodec"))
def unknown_codec(path):
    meta(path, compressor={"id": "nosuchcodec"})


@bad(refused=("v/.zarray", "nosuchfilter"))
def unknown_filter(path):
    meta(path, filters=[{"id": "nosuchfilter"}])


@bad(refused="v/.zarray")
def codec_no_object(path):
    meta(path, compressor="zlib")


@bad(refused=("v/.zarray", "dtype"))
def unknown_dtype(path):
    meta(path, dtype="<q4")


@bad(refused=("v/.zarray", "dtype"))
def dtype_nothing(path):
    meta(path, dtype="|S0")


@bad(refused=("v/.zarray", "order"))
def unknown_order(path):
    meta(path, order="X")


@bad(refused=("v/.zarray", "fill"))
def fill_no_number(path):
    meta(path, fill_value="2**40")


@bad(refused="v/.zarray")
def object_without_codec(path):
    meta(path, dtype="|O")


@bad(refused=("v/.zattrs",))
def attributes_list(path):
    put(path, "v/.zattrs", [1])


@bad(refused=("v/.zattrs", "2", "1"), hide=False)
def too_many_names(path):
    put(path, "v/.zattrs", {"_ARRAY_DIMENSIONS": ["n", "m"]})


@bad(refused=("'n'", "/good", "/v"), hide=False)
def two_lengths(path):
    """One dimension, two lengths: the message names both variables."""
    array(path, "v", ramp((8,), "<i4"), (N,), {"_ARRAY_DIMENSIONS": ["n"]})


@bad(refused="v/.zarray")
def array_folder(path):
    instead(path, os.mkdir, "v/.zarray")


@bad(refused="v/.zarray", hide=False)
def array_dangling(path):
    instead(path, lambda p: os.symlink("nothing", p), "v/.zarray")


@bad(refused="v/.zarray", hide=False)
def array_pipe(path):
    instead(path, os.mkfifo, "v/.zarray")


@bad(refused="v/.zarray")
def array_long(path):
    with open(os.path.join(path, "v/.zarray"), "r+b") as f:
        f.truncate(1 << 40)


@bad("v3", refused="v/zarr.json")
def three_no_json(path):
    put(path, "v/zarr.json", b'{"zarr_format": 3,')


@bad("v3", refused=("v/zarr.json", "shape"))
def three_shape(path):
    meta(path, "v/zarr.json", shape=[2**63])


@bad("v3", refused=("v/zarr.json", "transformers"))
def three_transformers(path):
    meta(path, "v/zarr.json", storage_transformers=[{"name": "x", "configuration": {}}])


@bad("v3", refused=("v/zarr.json", "secret"))
def three_extension(path):
    meta(path, "v/zarr.json", secret={"name": "x", "must_understand": True})


@bad("v3", refused=("v/zarr.json", "nosuchcodec"))
def three_codec(path):
    meta(path, "v/zarr.json", codecs=[{"name": "nosuchcodec"}])


@bad("v3shard", refused=("v/zarr.json",))
def three_shard_rank(path):
    from gen import z_three
    meta(path, "v/zarr.json", codecs=[z_three.sharding((2, 2), z_three.LITTLE)])


@bad("v3shard", refused=("v/zarr.json",))
def three_shard_zero(path):
    from gen import z_three
    meta(path, "v/zarr.json", codecs=[z_three.sharding((0,), z_three.LITTLE)])


# ---- chunks ----

@bad("zlib", chunks=(1,))
def truncated(path):
    chunk(path, lambda b: b[:len(b) // 2])


@bad("zlib", chunks=(0, 2), beside=(1,))
def no_zlib(path):
    chunk(path, lambda b: b"this is not compressed", "v/0")
    chunk(path, lambda b: b"", "v/2")


@bad("zlib", chunks=(1,), options=("filter=none",))
def inflates_to_less(path):
    """Only with decoding: what is passed as it is, HDF5 inflates, and takes memory for the rest."""
    put(path, "v/1", zlib.compress(b"abcd"))


@bad("blosc", chunks=(1,))
def blosc_truncated(path):
    chunk(path, lambda b: b[:-3])


@bad("blosc", chunks=(1,))
def blosc_claims_more(path):
    chunk(path, lambda b: b[:4] + struct.pack("<I", 1 << 30) + b[8:])


@bad("blosc", chunks=(1,))
def blosc_claims_less(path):
    chunk(path, lambda b: b[:4] + struct.pack("<I", 4) + b[8:])


@bad("blosc", chunks=(0,))
def blosc_empty(path):
    chunk(path, lambda b: b"", "v/0")


@bad("raw", chunks=(1,))
def short(path):
    chunk(path, lambda b: b[:-1])


@bad("raw", chunks=(2,))
def nothing_in_it(path):
    chunk(path, lambda b: b"", "v/2")


@bad("raw", chunks=(1,))
def too_long(path):
    chunk(path, lambda b: b + b"1234")


@bad("raw", chunks=(1,))
def chunk_folder(path):
    instead(path, os.mkdir)


@bad("raw", chunks=(1,))
def chunk_dangling(path):
    instead(path, lambda p: os.symlink("nothing", p))


@bad("raw", chunks=(1,))
def chunk_pipe(path):
    instead(path, os.mkfifo)


@bad("raw", chunks=(1,))
def chunk_outside(path):
    """A link out of the store to a file of the right size."""
    outside = path + ".outside"
    shutil.copy(os.path.join(path, "v/1"), outside)
    instead(path, lambda p: os.symlink("../../" + os.path.basename(outside), p))


@bad("raw", chunks=(1,))
def chunk_absolute(path):
    instead(path, lambda p: os.symlink(os.path.join(path, "v/0"), p))


@bad("raw", chunks=(1,))
def chunk_loop(path):
    instead(path, lambda p: os.symlink("1", p))


@bad("zlib", chunks=(1,), options=("filter=none",))
def inflates_to_more(path):
    chunk(path, lambda b: zlib.compress(zlib.decompress(b) + b"more"))


@bad("zlib", chunks=(1,), beside=(0, 2))
def compressed_dangling(path):
    instead(path, lambda p: os.symlink("nothing", p))


@bad("raw", chunks=(1,))
def chunk_forbidden(path):
    os.chmod(os.path.join(path, "v/1"), 0)


@bad("crc", chunks=(1,))
def crc_wrong(path):
    chunk(path, flipped)


@bad("v3crc", chunks=(1,))
def crc32c_wrong(path):
    chunk(path, flipped, "v/c/1")


@bad("v3crc", chunks=(1,))
def crc32c_alone(path):
    chunk(path, lambda b: b[:3], "v/c/1")


@bad("v3shard", chunks=(1,))
def shard_index_lies(path):
    """The index says that the second chunk lies behind the end of the shard."""
    shard_index(path, 1, (1 << 40, 8))


@bad("v3shard", chunks=(1,))
def shard_index_overflows(path):
    shard_index(path, 1, (2**64 - 8, 16))


@bad("v3shard", chunks=(0,))
def shard_index_long(path):
    shard_index(path, 0, (0, 2**63))


@bad("v3shard", chunks=(0, 1, 2))
def shard_index_crc(path):
    """Nothing of a shard is known when its index is damaged."""
    chunk(path, flipped, "v/c/0")


@bad("v3shard", chunks=(0, 1, 2))
def shard_short(path):
    chunk(path, lambda b: b[:60], "v/c/0")


@bad("v3shard", chunks=(0, 1, 2))
def shard_empty(path):
    chunk(path, lambda b: b"", "v/c/0")


def shard_index(path, at, entry):
    """Write one entry of the index of the shard, with a checksum that is right."""
    from gen import z_three

    def change(b):
        body, index = b[:-68], bytearray(b[-68:-4])  # four entries and the checksum
        index[16 * at:16 * at + 16] = struct.pack("<2Q", *entry)
        return body + z_three.with_crc(bytes(index))
    chunk(path, change, "v/c/0")


@bad("texts", chunks=(1,), beside=(0, 2))
def vlen_count(path):
    """More texts than the chunk has elements."""
    chunk(path, lambda b: struct.pack("<I", 2**32 - 1) + b[4:])


@bad("texts", chunks=(1,), beside=(0, 2))
def vlen_fewer(path):
    chunk(path, lambda b: struct.pack("<I", 1) + b[4:])


@bad("texts", chunks=(1,), beside=(0, 2))
def vlen_length(path):
    chunk(path, lambda b: b[:4] + struct.pack("<I", 2**31) + b[8:])


@bad("texts", chunks=(1,), beside=(0, 2))
def vlen_short(path):
    chunk(path, lambda b: b[:6])


@bad("texts", chunks=(1,), beside=(0, 2))
def vlen_dangling(path):
    instead(path, lambda p: os.symlink("nothing", p))


# ---- archives ----

def entries(path):
    """Offsets of the headers of an archive: {name: (local, central)}."""
    with open(path, "rb") as f:
        data = f.read()
    found, at = {}, data.index(b"PK\1\2")
    while data[at:at + 4] == b"PK\1\2":
        n, x, c = struct.unpack_from("<3H", data, at + 28)
        name = data[at + 46:at + 46 + n].decode()
        found[name] = (struct.unpack_from("<I", data, at + 42)[0], at)
        at += 46 + n + x + c
    return found


def patch(path, name, offset, data, both=None):
    """Bytes of an entry of the central directory; both: also at this offset of the local one."""
    local, central = entries(path)[name]
    with open(path, "r+b") as f:
        f.seek(central + offset)
        f.write(data)
        if both is not None:
            f.seek(local + both)
            f.write(data)


def renamed(path, old, new):
    """An entry gets another name of the same length, in both places."""
    assert len(old) == len(new)
    local, central = entries(path)[old]
    with open(path, "r+b") as f:
        for at in (local + 30, central + 46):
            f.seek(at)
            f.write(new.encode())


def zipbad(refused=(), chunks=(), kind="raw"):
    return bad(kind, refused=refused, chunks=chunks, hide=False, ending=".zarr.zip")


@zipbad(refused="../1")
def zip_up(path):
    with zipfile.ZipFile(path, "a") as z:
        z.writestr("v/../1", b"12345678")


@zipbad(refused="/v/1")
def zip_absolute(path):
    with zipfile.ZipFile(path, "a") as z:
        info = zipfile.ZipInfo("x")
        info.filename = "/v/1"
        z.writestr(info, b"12345678")


@zipbad(refused=".zip")
def zip_truncated(path):
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) - 40)


@zipbad(refused=".zip")
def zip_head_missing(path):
    with open(path, "rb") as f:
        data = f.read()
    with open(path, "wb") as f:
        f.write(data[300:])


@zipbad(refused="v/1")
def zip_size(path):
    """An entry that is longer than the archive."""
    patch(path, "v/1", 20, struct.pack("<2I", 1 << 30, 1 << 30))


@zipbad(refused="v/1")
def zip_stored_sizes(path):
    """A stored entry with two different sizes."""
    patch(path, "v/1", 20, struct.pack("<2I", 4 * N, 8 * N))


@zipbad(refused="v/")
def zip_overlap(path):
    """Two entries over the same bytes."""
    local, _ = entries(path)["v/0"]
    patch(path, "v/1", 42, struct.pack("<I", local))


@zipbad(refused="v/1")
def zip_encrypted(path):
    patch(path, "v/1", 8, struct.pack("<H", 1), 6)


@zipbad(chunks=(1,))
def zip_method(path):
    patch(path, "v/1", 10, struct.pack("<H", 93), 8)


@zipbad(chunks=(1,))
def zip_other_name(path):
    """The local header has another name than the directory."""
    local, _ = entries(path)["v/1"]
    with open(path, "r+b") as f:
        f.seek(local + 30)
        f.write(b"v/7")


@zipbad(chunks=(1,), kind="blosc")
def zip_crc(path):
    patch(path, "v/1", 16, b"\1\2\3\4", 14)


@zipbad(refused="v/.zarray")
def zip_crc_document(path):
    patch(path, "v/.zarray", 16, b"\1\2\3\4", 14)


@zipbad(chunks=(2,))
def zip_deflate_broken(path):
    """A deflated chunk whose stream is damaged."""
    with zipfile.ZipFile(path) as z:
        parts = {n: z.read(n) for n in z.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in parts.items():
            z.writestr(name, data)
    local, _ = entries(path)["v/2"]
    with open(path, "r+b") as f:
        f.seek(local + 30 + 3)
        f.write(b"\xff\xff\xff")
