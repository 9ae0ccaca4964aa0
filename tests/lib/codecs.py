# SPDX-License-Identifier: BSD-3-Clause
"""Chains of codecs without a mount: one codec_tool process that encodes and decodes on request.

    with CodecTool(t) as tool:
        tool.h5([(2, 4), (1, 5)], elem_size=4)
        stored = tool.encode(raw)
        assert tool.decode(stored, len(raw)) == raw

The protocol is described in tests/tools/codec_tool.c."""
import json
import os
import subprocess

import numpy as np

from lib.context import sanitizer_env, sanitizer_reports

CLASSES = {"i": "int", "u": "uint", "f": "float", "b": "int"}  # HDF5's booleans are enums


class CodecError(Exception):
    """An answer that is an error: `code` is the errno's name, the text says what is wrong."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code


class CodecTool:
    def __init__(self, t):
        self.path = os.path.join(os.path.dirname(t.binary), "tests", "codec_tool")
        self.log = t.path(f"codec-tool-{t.number()}")
        self.process = None
        self.last = b""  # what was asked last, for messages

    def __enter__(self):
        assert os.access(self.path, os.X_OK), f"no program at {self.path}: run make tools"
        self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE,
                                        env=sanitizer_env(self.log))
        return self

    def __exit__(self, kind, value, trace):
        self.process.stdin.close()
        status = self.process.wait(30)
        self.process.stdout.close()
        problems = sanitizer_reports(self.log)
        if kind is None:
            assert not problems, problems
            assert status == 0, f"codec_tool ends with {status}"
        return False

    def _ask(self, line, payload=b""):
        """(bytes, text) of the answer."""
        self.last = line.encode() + b"\n"
        try:
            self.process.stdin.write(self.last + payload)
            self.process.stdin.flush()
            head = self.process.stdout.readline()
        except BrokenPipeError:
            head = b""
        if not head.endswith(b"\n"):
            self._died()
        word, _, rest = head.decode(errors="replace").rstrip("\n").partition(" ")
        if word != "ok":
            raise CodecError(word, rest)
        size, _, text = rest.partition(" ")
        data = self.process.stdout.read(int(size))
        if len(data) != int(size):
            self._died()
        return data, text

    def _died(self):
        status = self.process.wait(30)
        raise AssertionError(f"codec_tool ended with {status} while asked {self.last!r:.200}\n"
                             + sanitizer_reports(self.log))

    # ---- chains ----

    def h5(self, filters, elem_size=1):
        """The chain of an HDF5 dataset: [(id, parameter, ...)]."""
        text = "|".join(",".join(str(int(v) & 0xffffffff) for v in f) for f in filters)
        return _filters(self._ask(f"h5 {elem_size} {text or '-'}")[1])

    def zarr2(self, dtype, filters=None, compressor=None, shape=(1,)):
        """The chain of a Zarr v2 array: configurations, or numcodecs' objects."""
        dtype = np.dtype(dtype)
        return self.document(2, {
            "zarr_format": 2, "shape": shape, "chunks": shape, "order": "C",
            "dtype": dtype.descr if dtype.names else dtype.str, "fill_value": None,
            "filters": [_config(f) for f in filters] if filters else None,
            "compressor": _config(compressor)})

    def zarr3(self, data_type, codecs, shape=(1,)):
        """The chain of a Zarr v3 array."""
        return self.document(3, {
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": codecs})

    def document(self, version, doc):
        data = json.dumps(doc).encode()
        return _filters(self._ask(f"zarr{version} {len(data)}", data)[1])

    def prepare(self, dtype, chunk, fill=None):
        """The parameters that an HDF5 writer stores with chunks of this type and shape."""
        dtype = np.dtype(dtype)
        big = dtype.byteorder == ">"
        self._ask(f"array {CLASSES.get(dtype.kind, 'other')} {dtype.itemsize} "
                  f"{'big' if big else 'little'} {'x'.join(str(n) for n in chunk)} "
                  f"{'-' if fill is None else np.array(fill, dtype).tobytes().hex()}")
        return _filters(self._ask("prepare")[1])

    def configs(self):
        """The chain as numcodecs' configurations."""
        return json.loads(self._ask("json")[0])

    def codecs(self):
        """Every codec that is there: [{"name":, "id":, "zarr2":, "zarr3":, "can": set}]."""
        rows = []
        for line in self._ask("list")[0].decode().splitlines():
            name, number, zarr2, zarr3, *can = line.split(" ")
            rows.append({"name": name, "id": int(number), "can": set(can),
                         "zarr2": None if zarr2 == "-" else zarr2,
                         "zarr3": None if zarr3 == "-" else zarr3})
        return rows

    def memory(self):
        """Most bytes of address space that the process has had so far."""
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(x.split()[1]) << 10 for x in f if x.startswith("VmPeak:"))

    # ---- bytes ----

    def encode(self, data):
        return self._ask(f"encode {len(data)}", bytes(data))[0]

    def frame(self, data):
        return self._ask(f"frame {len(data)}", bytes(data))[0]

    def decode(self, data, size, mask=0):
        return self._ask(f"decode {mask} {size} {len(data)}", bytes(data))[0]

    def decode_any(self, data, most):
        return self._ask(f"any {most} {len(data)}", bytes(data))[0]


def _config(codec):
    return codec.get_config() if hasattr(codec, "get_config") else codec


def _filters(text):
    """[(id, parameter, ...)] from "ELEM CHAIN"."""
    chain = text.split(" ")[1]
    if chain == "-":
        return []
    return [tuple(int(v) for v in f.split(",")) for f in chain.split("|")]
