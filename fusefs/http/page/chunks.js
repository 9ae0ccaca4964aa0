// SPDX-License-Identifier: BSD-3-Clause
// chunks.js - which chunks of a variable there are, and how long they are.
import { COLOURS } from "./colour.js";
import { encode, json } from "./http.js";
import { bytes, element, plural } from "./text.js";

const PAGES = 8; // answers that are asked for at most
const CELLS = 20000; // that are drawn

// Sizes - of a variable's chunks, as far as they were asked for.
export class Sizes {
  static async load(path) {
    const made = new Sizes();
    made.sizes = [];
    for (let page = 0; page < PAGES; page++) {
      const got = await json(`/api/chunks?array=${encode(path)}&from=${made.sizes.length}`);
      if (!got) return null;
      Object.assign(made, { grid: got.grid, count: got.count, unlisted: got.unlisted });
      made.sizes.push(...got.sizes);
      if (!got.sizes.length || made.sizes.length >= got.count) break;
    }
    return made;
  }

  get text() {
    if (this.unlisted) {
      const all = plural(this.count, "chunk");
      return `${all}. Which chunks are stored is known only after they are read.`;
    }
    const known = this.sizes.length;
    const absent = this.sizes.filter((n) => n === -1).length;
    const stored = this.sizes.filter((n) => n >= 0);
    const total = stored.reduce((a, b) => a + b, 0);
    const parts = [
      known < this.count
        ? `The first ${known.toLocaleString("en")} of ${plural(this.count, "chunk")}`
        : plural(this.count, "chunk"),
    ];
    parts.push(`${absent ? `${absent.toLocaleString("en")} never written` : "all written"}`);
    if (stored.length) {
      const [low, high] = stored.reduce(
        ([a, b], n) => [Math.min(a, n), Math.max(b, n)],
        [Infinity, 0],
      );
      parts.push(low === high ? `${bytes(low)} each` : `${bytes(low)} to ${bytes(high)} each`);
      parts.push(`${bytes(total)} in all`);
    }
    return `${parts.join(", ")}.`;
  }
}

function spotted(sizes, fixed, x, y) {
  const { grid } = sizes;
  const strides = grid.map((_, i) => grid.slice(i + 1).reduce((a, b) => a * b, 1));
  const base = fixed.reduce((sum, n, i) => (i === x || i === y ? sum : sum + n * strides[i]), 0);
  return (column, row) =>
    sizes.sizes[base + column * (strides[x] ?? 0) + (y === null ? 0 : row * strides[y])];
}

// shade - of a length, on a scale that tells the longest ones apart.
function shade(size, largest) {
  const part = (Math.log1p(size) / Math.log1p(largest)) ** 3;
  return `rgb(${COLOURS[Math.round(40 + 190 * part)].join(",")})`;
}

function hatch(pen, x, y, w, h, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.strokeRect(x + 0.5, y + 0.5, Math.max(0, w - 1), Math.max(0, h - 1));
  if (w < 6 || h < 6) return;
  pen.beginPath();
  pen.moveTo(x + 1, y + h - 1);
  pen.lineTo(x + w - 1, y + 1);
  pen.stroke();
}

// draw - the chunks across the picture: fixed: the chunk that is shown along each dimension. flip:
// the picture has its first row at the bottom.
export function draw(canvas, sizes, fixed, x, y, flip) {
  const columns = x === undefined ? 1 : sizes.grid[x];
  const rows = y === null || y === undefined ? 1 : sizes.grid[y];
  const at = spotted(sizes, fixed, x, y ?? null);
  const all = getComputedStyle(canvas);
  const colour = (name) => all.getPropertyValue(`--${name}`).trim();
  const shown = sizes.count > 1 && columns * rows <= CELLS && sizes.sizes.length > 0;
  canvas.hidden = !shown;
  if (!shown) return;
  const width = Math.min(canvas.parentElement.clientWidth - 2, Math.max(120, columns * 36), 420);
  const height = Math.min(220, Math.max(28, (rows * width) / columns));
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const largest = sizes.sizes.reduce((a, b) => Math.max(a, b), 1);
  const gap = width / columns > 6 && height / rows > 6 ? 2 : 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const size = at(column, row);
      const [px, py] = [
        (column * width) / columns,
        ((flip ? rows - 1 - row : row) * height) / rows,
      ];
      const [w, h] = [width / columns - gap, height / rows - gap];
      if (size === undefined || size === -1) {
        hatch(pen, px, py, w, h, colour("muted"));
        continue;
      }
      pen.fillStyle = size < 0 ? colour("accent") : shade(size, largest);
      pen.fillRect(px, py, w, h);
    }
  }
}

export function card(text) {
  const canvas = element("canvas", { class: "map", "aria-hidden": "true", hidden: true });
  const said = element("p", { id: "chunk-text", text });
  const key = element("p", {
    class: "muted small",
    text:
      "Chunks of the picture: lighter chunks are larger; " +
      "crossed-out chunks were never written.",
  });
  return {
    canvas,
    said,
    key,
    card: element(
      "section",
      { class: "card" },
      element("h3", { text: "Chunks" }),
      said,
      element("div", { class: "map-box" }, canvas),
      key,
    ),
  };
}
