// SPDX-License-Identifier: BSD-3-Clause
// v3_zarrita.mjs JOBS RESULTS: what zarrita.js sees in trees of Zarr v3. The same input and output
// as v3_zarr.py, which explains them. It runs in a Debian of its own (scripts/peers-chroot).
//
// zarrita.js has no listing: without consolidated metadata the directories are walked.
import crypto from "node:crypto";
import fs from "node:fs";
import { FileSystemStore } from "@zarrita/storage";
import * as zarr from "zarrita";

const BYTES = 16 << 20;
const CHUNKS = 600;
const LARGE = 128 << 20;

const product = (list) => list.reduce((a, b) => a * b, 1);

function extent(shape, chunks, itemsize) {
	const stop = [...shape];
	const cut = (unit, limit) => {
		for (let axis = 0; axis < stop.length; axis++) {
			const sizes = stop.map((n, i) => Math.ceil(n / unit[i]));
			const total = product(sizes);
			if (total <= limit || total === 0) return;
			const rest = product(sizes.slice(axis + 1));
			stop[axis] = Math.min(stop[axis], unit[axis] * Math.max(1, Math.floor(limit / rest)));
		}
	};
	cut(stop.map(() => 1), Math.floor(BYTES / Math.max(1, itemsize)));
	cut(chunks.map((c) => Math.max(1, c)), CHUNKS);
	return stop;
}

const sha256 = (bytes) => crypto.createHash("sha256").update(bytes).digest("hex");

function hashTexts(values) {
	const h = crypto.createHash("sha256");
	for (const v of values) {
		const bytes = Buffer.from(v ?? "", "utf8");
		const length = Buffer.alloc(8);
		length.writeBigUInt64LE(BigInt(bytes.length));
		h.update(length).update(bytes);
	}
	return h.digest("hex");
}

const bytesOf = (a) => Buffer.from(a.buffer, a.byteOffset, a.byteLength);

// All NaNs made one: the patterns that numpy writes.
function oneNaN(a, dtype) {
	if (dtype === "float64") {
		const copy = new Float64Array(a);
		const raw = new BigUint64Array(copy.buffer);
		for (let i = 0; i < copy.length; i++) {
			if (Number.isNaN(copy[i])) raw[i] = 0x7ff8000000000000n;
		}
		return copy;
	}
	const copy = a.slice();
	const wide = dtype === "float32";
	const raw = new (wide ? Uint32Array : Uint16Array)(copy.buffer, copy.byteOffset, copy.length);
	for (let i = 0; i < copy.length; i++) {
		if (Number.isNaN(copy[i])) raw[i] = wide ? 0x7fc00000 : 0x7e00;
	}
	return copy;
}

const NUMPY = { bool: "|b1", int8: "|i1", uint8: "|u1", float16: "<f2", float32: "<f4",
	float64: "<f8", int16: "<i2", int32: "<i4", int64: "<i8", uint16: "<u2", uint32: "<u4",
	uint64: "<u8", string: "string" };

// A scalar comes as the bare value; everything else as data in C order.
function dataOf(got, array) {
	if (got === null || typeof got !== "object" || !("data" in got)) {
		if (array.dtype === "string") return [got];
		const one = { bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array,
			uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, float32: Float32Array,
			float64: Float64Array, int64: BigInt64Array, uint64: BigUint64Array,
			float16: globalThis.Float16Array }[array.dtype];
		return new one([got]);
	}
	let stride = 1;
	for (let i = got.shape.length - 1; i >= 0; i--) {
		if (got.shape[i] > 1 && got.stride[i] !== stride) throw new Error("not in C order");
		stride *= got.shape[i];
	}
	return got.data;
}

async function read(array) {
	const out = { shape: array.shape, chunks: array.chunks, shards: null, type: array.dtype,
		dims: array.dimensionNames ?? null, attrs: array.attrs, fill: String(array.fillValue) };
	const size = { string: 16 }[array.dtype] ?? Number(/\d+$/.exec(array.dtype)?.[0] ?? 8) / 8;
	out.region = extent(array.shape, array.chunks, size);
	if (size * product(array.chunks) > LARGE) return { ...out, skipped: true };
	out.dtype = NUMPY[array.dtype] ?? array.dtype;
	if (product(array.shape) === 0) { // it cannot read what has no element
		out.sha = out.bits = sha256(Buffer.alloc(0));
		return out;
	}
	try {
		const got = await zarr.get(array, out.region.map((n) => zarr.slice(0, n)));
		const data = dataOf(got, array);
		if (array.dtype === "string") {
			out.sha = out.bits = hashTexts(data);
		} else {
			const raw = ArrayBuffer.isView(data) ? data : Uint8Array.from(data, Number);
			out.bits = sha256(bytesOf(raw));
			out.sha = array.dtype.startsWith("float") ? sha256(bytesOf(oneNaN(raw, array.dtype)))
				: out.bits;
		}
	} catch (error) {
		out.error = said(error);
	}
	return out;
}

const said = (error) => `${error.name}: ${error.message}`.slice(0, 300)
	+ (error.cause ? ` (${String(error.cause.message ?? error.cause).slice(0, 200)})` : "");

// Paths of all nodes below a directory: chunks are not looked at.
function nodes(folder, path = "") {
	const found = [];
	if (!fs.existsSync(`${folder}${path}/zarr.json`)) return found;
	found.push(path || "/");
	if (JSON.parse(fs.readFileSync(`${folder}${path}/zarr.json`)).node_type !== "group") return found;
	for (const entry of fs.readdirSync(`${folder}${path}`, { withFileTypes: true })) {
		if (entry.isDirectory()) found.push(...nodes(folder, `${path}/${entry.name}`));
	}
	return found;
}

// Names that a URL cannot have as they are: zarrita.js resolves paths as URLs do.
const unsayable = (path) => /[?#%\\\t\r\n]/.test(path);

async function run(job) {
	const result = { id: job.id, format: 3, groups: {}, arrays: {}, consolidated: null, unsayable: [],
		problems: [] };
	const store = new FileSystemStore(job.path);
	let paths;
	let listed;
	try {
		paths = nodes(job.path);
		const root = JSON.parse(fs.readFileSync(`${job.path}/zarr.json`));
		if (root.consolidated_metadata) {
			listed = await zarr.withConsolidatedMetadata(store, { format: "v3" });
			result.consolidated = listed.contents().map((x) => x.path).filter((p) => p !== "/").sort();
		}
	} catch (error) {
		result.problems.push(`opening: ${said(error)}`);
		return result;
	}
	for (const path of paths) {
		if (unsayable(path)) {
			result.unsayable.push(path);
			continue;
		}
		try {
			const node = await zarr.open.v3(zarr.root(store).resolve(path));
			if (node.kind === "group") result.groups[path] = { attrs: node.attrs };
			else result.arrays[path] = await read(node);
			if (listed) sameListed(path, node, await zarr.open.v3(zarr.root(listed).resolve(path)));
		} catch (error) {
			result.problems.push(`${path}: ${said(error)}`);
		}
	}
	return result;
}

// What the consolidated metadata says must be what the node's own document says.
function sameListed(path, node, again) {
	const text = (x) => JSON.stringify([x.kind, x.attrs, x.shape, x.dtype, x.chunks, String(x.fillValue)]);
	if (text(node) !== text(again)) throw new Error(`consolidated ${text(again)}, own ${text(node)}`);
}

const [jobs, results] = process.argv.slice(2);
const out = fs.openSync(results, "w");
for (const job of JSON.parse(fs.readFileSync(jobs))) {
	fs.writeSync(out, `${JSON.stringify(await run(job))}\n`);
}
