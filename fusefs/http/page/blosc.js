// SPDX-License-Identifier: BSD-3-Clause
// blosc.js - Blosc frames of zlib, as this program makes them of shuffled HDF5 chunks, decoded so
// that damage is an error: numcodecs.js does not say when it could not decode one. Others go to it.
//
// Layout: c-blosc's README_CHUNK_FORMAT.rst.

const ZLIB = 3;
const HEADER = 16;

async function inflate(bytes, length) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const all = await new Response(stream).arrayBuffer().catch(() => {
    throw new Error("zlib cannot decompress it");
  });
  const out = new Uint8Array(all);
  if (out.length !== length) throw new Error("it has an unexpected length");
  return out;
}

function unshuffle(block, size) {
  const out = new Uint8Array(block.length);
  const count = Math.floor(block.length / size);
  for (let part = 0; part < size; part++) {
    for (let i = 0; i < count; i++) out[i * size + part] = block[part * count + i];
  }
  out.set(block.subarray(count * size), count * size);
  return out;
}

// block - of `length` bytes, in `parts` that were compressed one by one, from `at` on.
async function block(view, at, length, parts) {
  const out = new Uint8Array(length);
  const each = length / parts;
  for (let part = 0; part < parts; part++) {
    const size = view.getInt32(at, true);
    at += 4;
    if (size < 0 || at + size > view.byteLength) throw new Error("it is truncated");
    const bytes = new Uint8Array(view.buffer, view.byteOffset + at, size);
    out.set(size === each ? bytes : await inflate(bytes, each), part * each);
    at += size;
  }
  return out;
}

async function frame(view, flags, length) {
  const size = view.getUint8(3) || 1;
  const blocksize = view.getUint32(8, true);
  const out = new Uint8Array(length);
  if (!blocksize && length) throw new Error("its block size is 0");
  for (let from = 0, i = 0; from < length; from += blocksize, i++) {
    const n = Math.min(blocksize, length - from);
    const parts = flags & 0x10 || n < blocksize ? 1 : size;
    const got = await block(view, view.getUint32(HEADER + 4 * i, true), n, parts);
    out.set(flags & 1 && size > 1 ? unshuffle(got, size) : got, from);
  }
  return out;
}

// checked - the codec that decodes Blosc, given the one for all other frames.
export function checked(other) {
  return class {
    constructor(rest) {
      this.kind = "bytes_to_bytes";
      this.rest = rest;
    }

    static fromConfig(config, meta) {
      return new this(other.fromConfig(config, meta));
    }

    async decode(bytes) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      try {
        const flags = view.getUint8(2);
        const length = view.getUint32(4, true);
        if (length > 2 ** 30) throw new Error("it is too large");
        if (flags & 2 && bytes.length < HEADER + length) throw new Error("it is truncated");
        if (flags >> 5 !== ZLIB || flags & 6) return this.rest.decode(bytes);
        return await frame(view, flags, length);
      } catch (error) {
        throw new Error(`a Blosc frame is damaged: ${error.message}`);
      }
    }
  };
}
