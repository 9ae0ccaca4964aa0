// SPDX-License-Identifier: BSD-3-Clause
// data.js - a Zarr tree by HTTP: its documents as a tree of nodes, and values of its arrays.
import { encode, json, request } from "./http.js";

const CHUNKS_LIMIT = 64 * 2 ** 20; // decoded bytes that one picture may need
const LINE_LIMIT = 2 ** 20; // values of a coordinate
const SIDE = 1200; // values along one side of a picture

// Reader - arrays are read in a worker: libraries that decode make code of their own, which the
// page itself may not (Content-Security-Policy), and nobody waits for them.
class Reader {
  constructor() {
    this.waiting = new Map();
    this.last = 0;
    this.worker = new Worker("/page/reader.js", { type: "module" });
    this.worker.onmessage = ({ data }) => {
      const { resolve, reject } = this.waiting.get(data.id) ?? {};
      this.waiting.delete(data.id);
      if (data.error !== undefined) reject?.(new Error(data.error));
      else resolve?.(data);
    };
    this.worker.onerror = () => {
      for (const { reject } of this.waiting.values())
        reject(new Error("the reader could not be started"));
      this.waiting.clear();
    };
  }

  ask(question, signal) {
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ ...question, id });
      signal?.addEventListener("abort", () => {
        if (!this.waiting.delete(id)) return;
        this.worker.postMessage({ id, abort: true });
        reject(new DOMException("given up", "AbortError"));
      });
    });
  }
}

// Documents.

const KINDS = {
  b: "bool",
  i: "int",
  u: "uint",
  f: "float",
  c: "complex",
  S: "bytes",
  U: "string",
  O: "string",
  V: "raw",
  M: "datetime",
  m: "timedelta",
};

function dtypeOf(text) {
  if (typeof text !== "string") return { name: "compound", size: 8 };
  const found = /^[<>|]?([a-zA-Z])(\d*)/.exec(text);
  const size = Number(found?.[2] || 1);
  if (!found) return { name: text, size: 8 };
  if (found[1] === "b") return { name: "bool", size: 1 };
  if (found[1] === "O") return { name: "string", size: 16 };
  return {
    name: KINDS[found[1]] + (found[1] === "U" || found[1] === "S" ? ` of ${size}` : size * 8),
    size: found[1] === "U" ? size * 4 : size,
  };
}

const codecText = (codec) => {
  const rest = { ...codec };
  delete rest.id;
  const settings = Object.entries(rest).map(
    ([k, v]) => `${k} ${typeof v === "object" ? JSON.stringify(v) : v}`,
  );
  return settings.length ? `${codec.id} (${settings.join(", ")})` : codec.id;
};

function array2(meta, attrs) {
  const type = dtypeOf(meta.dtype);
  const codecs = [...(meta.filters ?? []), ...(meta.compressor ? [meta.compressor] : [])];
  return {
    kind: "array",
    format: 2,
    shape: meta.shape,
    chunks: meta.chunks,
    dtype: type.name,
    itemsize: type.size,
    fill: meta.fill_value,
    filters: codecs.map(codecText),
    dims: attrs._ARRAY_DIMENSIONS ?? [],
  };
}

function array3(meta) {
  const sharded = meta.codecs?.find((c) => c.name === "sharding_indexed");
  const outer = meta.chunk_grid.configuration.chunk_shape;
  const codecs = sharded ? sharded.configuration.codecs : (meta.codecs ?? []);
  const name = typeof meta.data_type === "string" ? meta.data_type : meta.data_type.name;
  const bits = /(\d+)$/.exec(name);
  return {
    kind: "array",
    format: 3,
    shape: meta.shape,
    dtype: name,
    chunks: sharded ? sharded.configuration.chunk_shape : outer,
    shards: sharded ? outer : null,
    itemsize: bits ? Number(bits[1]) / 8 : name === "bool" ? 1 : 16,
    fill: meta.fill_value,
    filters: codecs.map((c) => codecText({ id: c.name, ...c.configuration })),
    dims: meta.dimension_names ?? [],
  };
}

// nodes2, nodes3 - a map from paths ("" the root) to nodes without children.
function nodes2(metadata) {
  const nodes = new Map();
  for (const [key, meta] of Object.entries(metadata)) {
    const found = /^(?:(.*)\/)?\.z(array|group)$/.exec(key);
    if (!found) continue;
    const path = found[1] ?? "";
    const attrs = metadata[path ? `${path}/.zattrs` : ".zattrs"] ?? {};
    nodes.set(path, {
      ...(found[2] === "array" ? array2(meta, attrs) : { kind: "group" }),
      attrs,
    });
  }
  return nodes;
}

function nodes3(top) {
  const nodes = new Map();
  const all = { ...(top.consolidated_metadata?.metadata ?? {}), "": top };
  for (const [path, meta] of Object.entries(all)) {
    const node = meta.node_type === "array" ? array3(meta) : { kind: "group" };
    nodes.set(path, { ...node, attrs: meta.attributes ?? {} });
  }
  return nodes;
}

// crawl - documents of a tree that has none for all of it, by the lists of its directories.
async function crawl(base, format, found = {}, path = "", left = { n: 2000 }) {
  const at = path ? `${path}/` : "";
  const names = format === 2 ? [".zarray", ".zgroup", ".zattrs"] : ["zarr.json"];
  for (const name of names) {
    const meta = await json(base + encode(at + name));
    if (meta) found[format === 2 ? at + name : path] = meta;
  }
  if (found[`${at}.zarray`] || found[path]?.node_type === "array" || left.n-- <= 0) return found;
  const page = await (await request(base + encode(at)))?.text();
  const links = new DOMParser().parseFromString(page ?? "", "text/html").querySelectorAll("a");
  for (const link of links) {
    const name = link.textContent;
    if (name.endsWith("/")) await crawl(base, format, found, at + name.slice(0, -1), left);
  }
  return found;
}

// documents - format: of the tree, 0: not known.
async function documents(base, format) {
  const top = format === 2 ? null : await json(`${base}zarr.json`);
  if (top?.consolidated_metadata || top?.node_type === "array") return nodes3(top);
  if (top) {
    const found = await crawl(base, 3);
    return nodes3({ ...top, consolidated_metadata: { metadata: found } });
  }
  const all = await json(`${base}.zmetadata`);
  return nodes2(all ? all.metadata : await crawl(base, 2));
}

function grow(nodes, path, name) {
  const node = { ...(nodes.get(path) ?? { kind: "group", attrs: {} }), path: `/${path}`, name };
  if (node.kind === "array") return node;
  const before = path ? `${path}/` : "";
  const names = new Set();
  for (const other of nodes.keys()) {
    if (other !== path && other.startsWith(before))
      names.add(other.slice(before.length).split("/")[0]);
  }
  node.children = [...names].map((n) => grow(nodes, before + n, n));
  node.children.sort((a, b) => (a.kind === b.kind ? 0 : a.kind === "array" ? -1 : 1));
  return node;
}

// Dataset - one Zarr tree.
export class Dataset {
  static async load(base, format) {
    const made = new Dataset();
    made.base = base;
    made.reader = new Reader();
    made.canDraw = (await made.reader.ask({ hello: true })).draws;
    made.root = grow(await documents(base, format), "", "");
    return made;
  }

  find(path, node = this.root) {
    if (node.path === path) return node;
    for (const child of node.children ?? []) {
      const found = this.find(path, child);
      if (found) return found;
    }
    return null;
  }

  // coordinate - the array that gives the values along a dimension: of its name, in the group or
  // one above it. null: there is none.
  coordinate(node, dim) {
    if (!dim) return null;
    const parts = node.path.split("/").slice(0, -1);
    for (; parts.length; parts.pop()) {
      const found = this.find(`${parts.join("/")}/${dim}`);
      if (found) {
        const fits =
          found.shape?.length === 1 && found.shape[0] === node.shape[node.dims.indexOf(dim)];
        return fits && found.shape[0] <= LINE_LIMIT && !/string|bytes|raw/.test(found.dtype)
          ? found
          : null;
      }
    }
    return null;
  }

  // read - selection: of each dimension an index, or { start, stop, step }. Gives data, shape and
  // stride.
  read(node, selection, signal) {
    const { path, format } = node;
    return this.reader.ask({ base: this.base, path, format, selection }, signal);
  }

  async line(node, signal, window = [0, node.shape[0]], step = 1) {
    const { data } = await this.read(node, [slice(window[0], window[1], step)], signal);
    return unpack(node, data);
  }
}

// Values.

const numeric = (value) =>
  typeof value === "number"
    ? value
    : typeof value === "bigint"
      ? Number(value)
      : { NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity }[value];

const slice = (start, stop, step) => ({ start, stop, step });

// unpack - numbers as they are meant: missing ones NaN, packed ones unpacked.
export function unpack(node, data) {
  const { attrs } = node;
  const holes = [attrs.missing_value].flat().map(numeric);
  if (node.format === 2 || "_FillValue" in attrs) holes.push(numeric(node.fill));
  if (typeof attrs._FillValue === "number") holes.push(attrs._FillValue);
  const single = node.dtype === "float32" ? Math.fround : (v) => v;
  const gone = new Set(holes.filter((v) => v !== undefined).map(single));
  const scale = numeric([attrs.scale_factor].flat()[0]) ?? 1;
  const offset = numeric([attrs.add_offset].flat()[0]) ?? 0;
  const out = new Float64Array(data.length);
  for (let i = 0; i < out.length; i++) {
    const value = Number(data[i]);
    out[i] = gone.has(value) ? NaN : value * scale + offset;
  }
  return out;
}

export const isText = (node) => /^(bytes|raw|compound|string)/.test(node.dtype);
export const isDrawn = (node) => !isText(node) && !node.dtype.startsWith("complex");

// cost - decoded bytes of the chunks that windows ([from, to) along each dimension) touch.
export function cost(node, windows) {
  return windows.reduce((bytes, [from, to], i) => {
    const chunk = node.chunks[i];
    return bytes * chunk * (Math.floor((to - 1) / chunk) - Math.floor(from / chunk) + 1);
  }, node.itemsize);
}

export const fits = (node, windows) => cost(node, windows) <= CHUNKS_LIMIT;
export const limit = CHUNKS_LIMIT;

// fitting - the windows along dimensions x and y halved until they may be read.
export function fitting(node, windows, axes) {
  const out = windows.map((w) => [...w]);
  while (!fits(node, out)) {
    const [from, to, i] = axes
      .map((a) => [...out[a], a])
      .sort((a, b) => b[1] - b[0] - (a[1] - a[0]))[0];
    if (to - from <= 1) break;
    out[i] = [from, from + Math.ceil((to - from) / 2)];
  }
  return out;
}

export const stepOf = ([from, to]) => Math.max(1, Math.ceil((to - from) / SIDE));

// section - values of a 2-D section: { values, width, height, steps }. windows: of all dimensions;
// those that are neither x nor y have one index. y null: a line.
export async function section(dataset, node, windows, x, y, signal) {
  const steps = windows.map(stepOf);
  const selection = windows.map(([from, to], i) =>
    i === x || i === y ? slice(from, to, steps[i]) : from,
  );
  const got = await dataset.read(node, selection, signal);
  const values = unpack(node, got.data);
  const [width, height] = [x, y].map((a) =>
    a === null ? 1 : Math.ceil((windows[a][1] - windows[a][0]) / steps[a]),
  );
  // the result's dimensions are in the array's order, its strides as zarrita says
  const order = [x, y].filter((a) => a !== null).sort((a, b) => a - b);
  const strides = got.stride ?? [];
  const along = (a) => (a === null ? 0 : (strides[order.indexOf(a)] ?? 1));
  const [sx, sy] = [along(x), along(y)];
  const out = new Float64Array(width * height);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      out[row * width + column] = values[row * sy + column * sx];
    }
  }
  return { values: out, width, height, steps: [steps[x], y === null ? 1 : steps[y]] };
}
