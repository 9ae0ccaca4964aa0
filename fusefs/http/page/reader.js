// SPDX-License-Identifier: BSD-3-Clause
// reader.js - a worker that reads arrays with zarrita. Messages: { id, hello }, answered with
// whether it can; { id, base, path, format, selection }, with data, shape and stride, or an error; { id,
// abort }.
import { checked } from "./blosc.js";
import { encode, parse, request } from "./http.js";
import { get, missing, open, registry, root, slice } from "./zarr.js";

const running = new Map(); // what may be given up

for (const name of missing ? [] : ["blosc", "numcodecs.blosc"]) {
  const load = registry.get(name);
  registry.set(name, async () => checked(await load()));
}

// Store - what zarrita reads from. Absence is a 404 and nothing else; errors are errors.
class Store {
  constructor(base) {
    this.base = base;
  }

  async get(key, options = {}) {
    const answer = await request(this.base + encode(key.slice(1)), { signal: options.signal });
    if (!answer) return undefined;
    if (!/(^|\/)(\.z\w+|zarr\.json)$/.test(key))
      return new Uint8Array(await answer.arrayBuffer());
    return new TextEncoder().encode(JSON.stringify(parse(await answer.text())));
  }

  async getRange(key, range, options = {}) {
    const value =
      "suffixLength" in range
        ? `bytes=-${range.suffixLength}`
        : `bytes=${range.offset}-${range.offset + range.length - 1}`;
    const answer = await request(this.base + encode(key.slice(1)), {
      headers: { Range: value },
      signal: options.signal,
    });
    return answer ? new Uint8Array(await answer.arrayBuffer()) : undefined;
  }
}

// plain - what can be sent: numbers, or texts.
function plain(data) {
  if (ArrayBuffer.isView(data)) return data;
  return Array.from({ length: data.length }, (_, i) => (data.get ? data.get(i) : data[i]));
}

async function read({ base, path, format, selection }, signal) {
  const at = root(new Store(base)).resolve(path);
  const array = await (format === 3 ? open.v3 : open.v2)(at, { kind: "array", attrs: false });
  const wanted = selection.map((s) =>
    typeof s === "number" ? s : slice(s.start, s.stop, s.step),
  );
  const got = await get(array, wanted, { signal });
  if (got?.data === undefined) return { data: [got], shape: [], stride: [] };
  return { data: plain(got.data), shape: got.shape, stride: got.stride };
}

self.onmessage = async ({ data: question }) => {
  const { id } = question;
  if (question.abort) {
    running.get(id)?.abort();
    return;
  }
  if (question.hello) {
    self.postMessage({ id, draws: !missing });
    return;
  }
  const stop = new AbortController();
  running.set(id, stop);
  try {
    const got = await read(question, stop.signal);
    const send = ArrayBuffer.isView(got.data) ? [got.data.buffer] : [];
    self.postMessage({ id, ...got }, { transfer: send });
  } catch (error) {
    self.postMessage({ id, error: error.cause?.message ?? error.message });
  } finally {
    running.delete(id);
  }
};
