// SPDX-License-Identifier: BSD-3-Clause
// details.js - what a node says of itself: attributes, and how it is stored.
import { bytes, element, number } from "./text.js";

function textOf(value) {
  if (typeof value === "number") return number(value, 15);
  if (Array.isArray(value)) {
    const shown = value.slice(0, 100).map(textOf).join(", ");
    return value.length > 100 ? `${shown}, … (${value.length} in all)` : shown;
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function table(title, rows) {
  const body = rows.map(([name, value]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", text: name }),
      element("td", { text: value }),
    ),
  );
  return element(
    "section",
    { class: "card" },
    element("h3", { text: title }),
    rows.length
      ? element("table", {}, element("tbody", {}, ...body))
      : element("p", { class: "muted", text: "none" }),
  );
}

export function attributes(node) {
  const rows = Object.entries(node.attrs)
    .filter(
      ([name]) =>
        name !== "_ARRAY_DIMENSIONS" && !name.startsWith("_nc") && !name.startsWith("_NC"),
    )
    .map(([name, value]) => [name, textOf(value)]);
  return table("Attributes", rows);
}

const times = (lengths) => (lengths.length ? lengths.join(" × ") : "scalar");

export function storage(node) {
  const count = node.shape.reduce((a, b) => a * b, 1);
  const rows = [
    ["Type", node.dtype],
    ["Shape", times(node.shape)],
    ["Dimensions", node.dims.length ? node.dims.join(", ") : "none"],
    ["Chunks", times(node.chunks)],
  ];
  if (node.shards) rows.push(["Shards", times(node.shards)]);
  rows.push(["Filters", node.filters.length ? node.filters.join(", ") : "none"]);
  rows.push(["Size", `${bytes(count * node.itemsize)} uncompressed`]);
  if (node.fill !== null && node.fill !== undefined) rows.push(["Fill value", textOf(node.fill)]);
  return table("Storage", rows);
}

// summary - what is in a group.
export function summary(node, choose) {
  const list = element(
    "ul",
    { class: "members" },
    ...node.children.map((child) =>
      element(
        "li",
        {},
        element("button", {
          type: "button",
          text: child.name,
          onclick: () => choose(child.path),
        }),
        element("span", {
          class: "muted",
          text: child.kind === "group" ? "group" : `${child.dtype}, ${times(child.shape)}`,
        }),
      ),
    ),
  );
  return element(
    "section",
    { class: "card" },
    element("h3", { text: "Contents" }),
    node.children.length ? list : element("p", { class: "muted", text: "empty" }),
  );
}

// code - how programs read the same. path: of the group.
export function code(base, format, path) {
  const more = [
    path === "/" ? "" : `, group=${JSON.stringify(path)}`,
    format === 3 ? ", zarr_format=3" : "",
  ];
  const text =
    "import xarray as xr\n" + `ds = xr.open_zarr("${location.origin}${base}"${more.join("")})`;
  return element(
    "section",
    { class: "card" },
    element("h3", { text: "In Python" }),
    element("pre", { text }),
  );
}
