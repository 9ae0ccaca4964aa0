# SPDX-License-Identifier: BSD-3-Clause
"""What a reader of the original file sees: h5py for values, types and attributes, netCDF4-python
for the names and lengths of dimensions. Written apart from the program under test, on purpose.

netCDF-C crashes on some valid files, so it runs in a process of its own and may fail; then
h5py alone is the judge."""
import os
import pickle
import resource
import select
import signal
import struct
import time

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5l, h5o, h5s, h5t

RESERVED = {".zarray", ".zgroup", ".zattrs", ".zmetadata", ".", ".."}
HIDDEN = {"CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Coordinates",
          "_Netcdf4Dimid", "_nc3_strict", "_NCProperties", "_ARRAY_DIMENSIONS",
          "_nczarr_superblock", "_nczarr_group", "_nczarr_array", "_nczarr_attr"}
DIM_ONLY = b"This is a netCDF dimension but not a netCDF variable"
NON_COORD = "_nc4_non_coord_"
UNKNOWN = "unknown"  # no expectation: neither present nor absent is wrong


def text(raw):
    """Bytes as the mount shows them: UTF-8, or else Latin-1, trailing NULs cut off."""
    if isinstance(raw, str):
        try:
            raw = raw.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raw = raw.encode("utf-8", "replace")
    raw = raw.rstrip(b"\0")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


class Type:
    """numpy: dtype that a Zarr reader should get; also: others that are as good; tail: dimensions
    of an array type; kind: plain, string (of any length), vlen, unknown."""

    def __init__(self, kind, numpy=None, tail=(), enum=None, also=()):
        self.kind = kind
        self.numpy = numpy
        self.tail = tail
        self.enum = enum
        self.also = also


def _standard_float(t):
    size = t.get_size()
    want = {2: (h5t.IEEE_F16LE, h5t.IEEE_F16BE), 4: (h5t.IEEE_F32LE, h5t.IEEE_F32BE),
            8: (h5t.IEEE_F64LE, h5t.IEEE_F64BE)}.get(size, ())
    return any(t.equal(w) for w in want)


def _order(t):
    return ">" if t.get_order() == h5t.ORDER_BE else "<"


def describe(t):
    """Type of an HDF5 type id."""
    cls = t.get_class()
    if cls in (h5t.INTEGER, h5t.BITFIELD):
        size = t.get_size()
        if size not in (1, 2, 4, 8):
            return Type(UNKNOWN)
        if cls == h5t.BITFIELD:
            return Type("plain", np.dtype(f"<u{size}"), also=(np.dtype(f">u{size}"),))
        sign = "u" if t.get_sign() == h5t.SGN_NONE else "i"
        # netCDF-C goes by the precision, h5py by the size
        also = [np.dtype(f"{o}{sign}{n}") for n in (1, 2, 4, 8) for o in "<>"
                if t.get_precision() < size * 8 and n * 8 >= t.get_precision()]
        return Type("plain", np.dtype(f"{_order(t)}{sign}{size}"), also=also)
    if cls == h5t.FLOAT:
        if _standard_float(t):
            return Type("plain", np.dtype(f"{_order(t)}f{t.get_size()}"))
        return Type(UNKNOWN if t.get_size() < 8 else "wide float")
    if cls == h5t.STRING:
        if t.is_variable_str():
            return Type("string")
        return Type("plain", np.dtype(f"S{t.get_size()}"))
    if cls == h5t.ENUM:
        base = describe(t.get_super())
        members = {}
        for i in range(t.get_nmembers()):
            members[t.get_member_name(i).decode("utf-8", "replace")] = t.get_member_value(i)
        if isinstance(t.dtype, np.dtype) and t.dtype == np.dtype(bool):
            return Type("plain", np.dtype("bool"), also=(np.dtype("i1"),))
        base.enum = members
        return base
    if cls == h5t.OPAQUE:
        return Type("plain", np.dtype(f"V{t.get_size()}"))
    if cls == h5t.ARRAY:
        base = describe(t.get_super())
        base.tail = tuple(t.get_array_dims()) + base.tail
        return base
    if cls == h5t.COMPOUND:
        return _compound(t)
    if cls == h5t.VLEN:
        base = describe(t.get_super())
        if base.kind == "plain" and base.numpy.kind in "iufb" and not base.tail:
            return Type("vlen", base.numpy, also=base.also)
        return Type(UNKNOWN)
    return Type(UNKNOWN)


def _compound(t):
    fields = []
    for i in range(t.get_nmembers()):
        m = describe(t.get_member_type(i))
        if m.kind != "plain":
            return Type(UNKNOWN)
        name = text(t.get_member_name(i))
        fields.append((name, m.numpy, m.tail) if m.tail else (name, m.numpy))
    if [f[0] for f in fields] == ["r", "i"] and fields[0][1] == fields[1][1]:
        base = fields[0][1]
        if base in (np.dtype("<f4"), np.dtype(">f4"), np.dtype("<f8"), np.dtype(">f8")):
            z = np.dtype(f"{base.byteorder if base.byteorder != '=' else '<'}c{base.itemsize * 2}")
            return Type("plain", z)
    try:
        return Type("plain", np.dtype(fields))
    except (TypeError, ValueError):
        return Type(UNKNOWN)


class Array:
    def __init__(self, path, h5path, dataset):
        self.path = path          # as the mount names it
        self.h5path = h5path
        self.dataset = dataset    # h5py.h5d.DatasetID
        self.type = describe(dataset.get_type())
        space = dataset.get_space()
        self.null = space.get_simple_extent_type() == h5s.NULL
        self.shape = () if self.null else tuple(dataset.shape) + tuple(self.type.tail)
        info = h5o.get_info(dataset)
        self.key = (info.fileno, info.addr)

    def virtual(self):
        return self.dataset.get_create_plist().get_layout() == h5d.VIRTUAL

    def undefined(self):
        """Whether nothing was written and no fill value is set: netCDF-C gives what was in
        memory, h5py zeros."""
        plist = self.dataset.get_create_plist()
        if plist.get_fill_time() == h5d.FILL_TIME_NEVER and self._holes(plist):
            return True
        return (self.dataset.get_storage_size() == 0 and plist.get_layout() != h5d.VIRTUAL
                and plist.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED)

    def _holes(self, plist):
        if plist.get_layout() != h5d.CHUNKED:
            return self.dataset.get_storage_size() == 0
        chunks = 1
        for n, c in zip(self.dataset.shape, plist.get_chunk()):
            chunks *= -(-n // c)
        return self.dataset.get_num_chunks() < chunks


class Group:
    def __init__(self, path, h5path, group):
        self.path = path
        self.h5path = h5path
        self.group = group


class Model:
    """Groups and arrays by path; `failed` holds paths that h5py cannot open."""

    def __init__(self, file):
        self.file = h5py.File(file, "r")
        self.groups = {}
        self.arrays = {}
        self.order = {}           # group path -> names in the order of the file
        self.failed = set()
        self.external = False     # whether there are external links
        root = h5g.open(self.file.id, b"/")
        self._walk(root, "/", b"/", (self._key(root),))

    @staticmethod
    def _key(oid):
        info = h5o.get_info(oid)
        return info.fileno, info.addr

    @staticmethod
    def names(group):
        """Links in creation order when tracked, else by name."""
        plist = group.get_create_plist()
        tracked = False
        try:
            tracked = bool(plist.get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED)
        except (RuntimeError, ValueError):
            pass
        found = []
        order = h5py.h5.INDEX_CRT_ORDER if tracked else h5py.h5.INDEX_NAME
        group.links.iterate(lambda name: found.append(name) and None, idx_type=order)
        return found

    def _walk(self, group, path, h5path, above):
        self.groups[path] = Group(path, h5path, group)
        shown = self.order.setdefault(path, [])
        try:
            names = self.names(group)
        except RuntimeError:
            self.failed.add(path)
            return
        for name in names:
            child_h5 = h5path.rstrip(b"/") + b"/" + name
            printable = text(name)
            if printable.startswith(NON_COORD):
                printable = printable[len(NON_COORD):]
            if printable in RESERVED:
                printable = "%2E" + printable[1:]
            printable = printable.replace("\\", "%5C")
            child = path.rstrip("/") + "/" + printable
            info = group.links.get_info(name)
            if info.type == h5l.TYPE_EXTERNAL:
                self.external = True
                continue
            try:
                obj = h5o.open(group, name)
                key = self._key(obj)
            except (KeyError, RuntimeError, ValueError, OSError):
                self.failed.add(child)
                continue
            if isinstance(obj, h5g.GroupID):
                if key in above or len(above) > 60:
                    continue
                shown.append(printable)
                self._walk(obj, child, child_h5, above + (key,))
            elif isinstance(obj, h5d.DatasetID):
                if self._dim_only(obj):
                    continue
                try:
                    self.arrays[child] = Array(child, child_h5, obj)
                    shown.append(printable)
                except (RuntimeError, TypeError, ValueError, OSError):
                    self.failed.add(child)

    @staticmethod
    def _dim_only(dataset):
        try:
            if not (h5a.exists(dataset, b"CLASS") and h5a.exists(dataset, b"NAME")):
                return False
            out = np.empty((), dtype=h5a.open(dataset, b"NAME").dtype)
            h5a.open(dataset, b"NAME").read(out)
            return bytes(out[()]).startswith(DIM_ONLY)
        except Exception:  # noqa: B902 - an odd NAME is no dimension
            return False


def hides(oid, name):
    """Whether a name of HIDDEN is netCDF's on this object, and not somebody else's."""
    if name in ("CLASS", "NAME"):
        a = Attr(oid, b"CLASS") if h5a.exists(oid, b"CLASS") else None
        return bool(a and a.value == ["DIMENSION_SCALE"])
    return True


def attributes(oid):
    """[(name, Attr)] in the order of the file, hidden ones left out."""
    found = []
    tracked = False
    try:
        tracked = bool(oid.get_create_plist().get_attr_creation_order()
                       & h5py.h5p.CRT_ORDER_TRACKED)
    except (AttributeError, RuntimeError, ValueError):
        pass
    names = []
    try:
        h5a.iterate(oid, lambda n, *_: names.append(n) and None,
                    index_type=h5py.h5.INDEX_CRT_ORDER if tracked else h5py.h5.INDEX_NAME)
    except RuntimeError:
        names = []
    for raw in names:
        name = text(raw)
        if name in HIDDEN:
            continue
        try:
            found.append((name, Attr(oid, raw)))
        except Exception:  # noqa: B902 - h5py cannot judge this one
            found.append((name, None))
    return found


class Attr:
    """value: a flat list of Python or numpy values, texts decoded; None when unknown."""

    def __init__(self, oid, raw):
        a = h5a.open(oid, raw)
        t = a.get_type()
        self.type = describe(t)
        space = a.get_space()
        self.null = space.get_simple_extent_type() == h5s.NULL
        self.rank = 0 if self.null else len(a.shape)
        self.value = None
        if self.null:
            self.value = []
            return
        if self.type.kind == "string":
            out = np.empty(a.shape, dtype=h5py.string_dtype())
            a.read(out)
            self.value = [text(x if x is not None and not isinstance(x, int) else b"")
                          for x in out.ravel()]
        elif self.type.kind == "plain":
            out = np.empty(a.shape, dtype=a.dtype)
            a.read(out)
            self._plain(out)

    def _plain(self, out):
        if self.type.numpy.kind == "S":
            self.value = [text(bytes(x)) for x in out.ravel()]
        elif self.type.numpy.kind in "iufb":
            self.value = list(out.ravel())


def _netcdf_group(group, path, result):
    for name, var in group.variables.items():
        entry = {"dims": tuple(var.dimensions), "shape": tuple(int(n) for n in var.shape),
                 "attrs": list(var.ncattrs())}
        result["vars"][path.rstrip("/") + "/" + name] = entry
    result["groups"][path] = {"attrs": list(group.ncattrs()),
                              "dims": {n: (len(d), d.isunlimited())
                                       for n, d in group.dimensions.items()}}
    for name, child in group.groups.items():
        _netcdf_group(child, path.rstrip("/") + "/" + name, result)


def in_child(func, seconds, memory=4 << 30):
    """func() in a forked process with limits: (True, result) or (False, why)."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 2)
            data = pickle.dumps((True, func()))
        except BaseException as error:  # noqa: B902
            data = pickle.dumps((False, f"{type(error).__name__}: {error}"))
        with os.fdopen(write, "wb") as f:
            f.write(struct.pack("<Q", len(data)) + data)
        os._exit(0)
    os.close(write)
    end = time.monotonic() + seconds
    data = b""
    while time.monotonic() < end:
        ready, _, _ = select.select([read], [], [], 0.2)
        if ready:
            part = os.read(read, 1 << 20)
            if not part:
                break
            data += part
    os.close(read)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    _, raw = os.waitpid(pid, 0)
    if len(data) >= 8 and len(data) == 8 + struct.unpack("<Q", data[:8])[0]:
        return pickle.loads(data[8:])
    return False, f"crashed or ran out of time (status {os.waitstatus_to_exitcode(raw)})"


def netcdf_model(file, seconds=10):
    """Dimensions and shapes as netCDF4-python names them, or None where it cannot say."""
    def read():
        import netCDF4
        with netCDF4.Dataset(file) as ds:
            result = {"vars": {}, "groups": {}}
            _netcdf_group(ds, "/", result)
            return result
    ok, result = in_child(read, seconds)
    return result if ok else None
