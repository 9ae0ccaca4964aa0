// SPDX-License-Identifier: BSD-3-Clause
// view.js - one variable: its picture, what chooses a section, and what it says of itself.
import { Axis } from "./axes.js";
import * as chunks from "./chunks.js";
import { cost, fits, fitting, isDrawn, isText, limit, section } from "./data.js";
import { attributes, code, storage } from "./details.js";
import { draw, extremes } from "./picture.js";
import { bytes, element, number } from "./text.js";

const title = (node) => node.attrs.long_name ?? node.attrs.standard_name ?? node.name;
const TEXTS = 200; // of a variable of texts

// View - shows a variable in a box until close. say(text, isError) tells people something.
export class View {
  constructor(dataset, node, box, say) {
    Object.assign(this, { dataset, node, box, say, lines: new Map(), cursor: null, auto: true });
    const n = node.shape.length;
    this.x = n ? n - 1 : null;
    this.y = n > 1 ? n - 2 : null;
    this.at = node.shape.map(() => 0);
    this.windows = node.shape.map((length) => [0, length]);
    this.turn = 0;
  }

  get units() {
    return this.node.attrs.units ?? "";
  }

  async open() {
    const { node } = this;
    const shape = node.shape.length ? ` · ${node.shape.join(" × ")}` : "";
    const path = `${node.path} · ${node.dtype}${shape}`;
    const head = [
      element("h2", { text: title(node) + (this.units ? ` (${this.units})` : "") }),
      element("p", { class: "muted", text: path }),
    ];
    this.chunks = chunks.card("…");
    const cards = element(
      "div",
      { class: "cards" },
      attributes(node),
      storage(node),
      this.chunks.card,
      code(this.dataset.base, node.format, node.path.replace(/\/[^/]*$/, "") || "/"),
    );
    const stage = element("div", { id: "stage" });
    this.box.replaceChildren(...head, stage, cards);
    this.loadChunks();
    if (!this.dataset.canDraw) {
      stage.append(
        element("p", {
          class: "notice",
          text:
            "This nczarrfs was built without its Zarr library, so it cannot draw pictures. " +
            "Everything else works.",
        }),
      );
    } else if (node.shape.some((n) => n === 0)) {
      stage.append(
        element("p", { class: "notice", text: "There are no values: a dimension has length 0." }),
      );
    } else if (isDrawn(node) && node.shape.length) {
      this.build(stage);
      await this.loadLines();
      await this.update();
    } else {
      await this.list(stage);
    }
  }

  close() {
    this.turn++;
    this.stop?.abort();
    this.watch?.disconnect();
  }

  // What is no picture: one value, or texts.
  async list(stage) {
    const out = element("p", { id: "readout", class: "value" });
    stage.append(out);
    if (!isText(this.node) && !isDrawn(this.node)) {
      out.textContent = `Values of type ${this.node.dtype} cannot be drawn.`;
      return;
    }
    try {
      const last = this.node.shape.length - 1;
      const windows = this.node.shape.map((n, i) =>
        i === last ? [0, Math.min(n, TEXTS)] : [0, 1],
      );
      const got = await this.dataset.read(
        this.node,
        windows.map(([from, to]) => ({ start: from, stop: to, step: 1 })),
      );
      const values = [...got.data].map((v) => (typeof v === "string" ? v : number(v)));
      out.textContent =
        values.join(", ") + (this.node.shape.some((n, i) => n > windows[i][1]) ? ", …" : "");
      this.say("");
    } catch (error) {
      this.say(`The values cannot be read: ${error.message}`, true);
    }
  }

  // Controls.

  build(stage) {
    this.canvas = element("canvas", {
      id: "picture",
      tabindex: "0",
      role: "img",
      "aria-describedby": "readout picture-help",
    });
    this.readout = element("output", { id: "readout", "aria-live": "polite" });
    const help = element("p", {
      id: "picture-help",
      class: "muted small",
      text: "Point at the picture, or focus it and use the arrow keys, to read values.",
    });
    this.controls = element("form", { class: "controls", onsubmit: (e) => e.preventDefault() });
    stage.append(
      element(
        "figure",
        {},
        element("div", { class: "picture-box" }, this.canvas),
        element("figcaption", {}, this.readout, help),
      ),
      this.controls,
    );
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("pointerdown", (e) => this.point(e));
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    this.watch = new ResizeObserver(() => this.paint());
    this.watch.observe(this.canvas.parentElement.parentElement);
    this.buildControls();
  }

  dimName(i) {
    return this.node.dims[i] ?? `dimension ${i}`;
  }

  choice(id, text, chosen, none, change) {
    const options = this.node.shape.map((n, i) =>
      element("option", { value: i, selected: i === chosen, text: `${this.dimName(i)} (${n})` }),
    );
    if (none)
      options.push(
        element("option", { value: "", selected: chosen === null, text: "none (draw a line)" }),
      );
    const select = element(
      "select",
      { id, onchange: () => change(select.value === "" ? null : Number(select.value)) },
      ...options,
    );
    return element("label", { class: "field" }, element("span", { text }), select);
  }

  buildControls() {
    const parts = [];
    if (this.node.shape.length > 1) {
      parts.push(
        element(
          "div",
          { class: "row" },
          this.choice("across", "Across", this.x, false, (i) =>
            this.setAxes(i, this.y === i ? this.x : this.y),
          ),
          this.choice("up", "Up", this.y, true, (i) =>
            this.setAxes(this.x === i ? (this.y ?? this.other(i)) : this.x, i),
          ),
        ),
      );
    }
    this.sliders = [];
    this.node.shape.forEach((length, i) => {
      if (i !== this.x && i !== this.y) parts.push(this.slider(i, length));
    });
    parts.push(this.rangeFields(), this.windowFields());
    this.controls.replaceChildren(...parts);
  }

  other(i) {
    return this.node.shape.findIndex((_, other) => other !== i);
  }

  setAxes(x, y) {
    Object.assign(this, { x, y, cursor: null });
    this.windows = this.node.shape.map((length) => [0, length]);
    this.buildControls();
    this.update();
  }

  slider(i, length) {
    const id = `slider-${i}`;
    const output = element("output", { for: id });
    const input = element("input", {
      type: "range",
      id,
      min: 0,
      max: length - 1,
      step: 1,
      value: this.at[i],
      disabled: length < 2,
      oninput: () => {
        this.at[i] = Number(input.value);
        this.name(i, input, output);
        this.update();
      },
    });
    this.sliders.push(() => this.name(i, input, output));
    this.name(i, input, output);
    return element(
      "div",
      { class: "slider" },
      element("label", { for: id, text: this.dimName(i) }),
      input,
      output,
    );
  }

  name(i, input, output) {
    const text = this.axis(i, 0, this.node.shape[i], 1).label(this.at[i], true);
    output.textContent = `${text} · ${this.at[i] + 1} of ${this.node.shape[i]}`;
    input.setAttribute("aria-valuetext", text);
  }

  rangeFields() {
    const field = (id, text) => {
      const input = element("input", {
        type: "number",
        id,
        step: "any",
        onchange: () => this.setRange(),
      });
      return [element("label", { class: "field" }, element("span", { text }), input), input];
    };
    const [low, lowInput] = field("low", "Lowest");
    const [high, highInput] = field("high", "Highest");
    const reset = element("button", {
      type: "button",
      id: "auto",
      text: "Fit to values",
      onclick: () => {
        this.auto = true;
        this.paint();
      },
    });
    Object.assign(this, { lowInput, highInput });
    return element("div", { class: "row" }, low, high, reset);
  }

  setRange() {
    const [low, high] = [this.lowInput, this.highInput].map((i) =>
      i.value === "" ? NaN : Number(i.value),
    );
    if (!(low < high)) {
      this.say("The lowest value must be less than the highest.", true);
      return;
    }
    this.say("");
    this.auto = false;
    this.range = [low, high];
    this.paint();
  }

  windowFields() {
    this.windowInputs = [];
    const axes = [this.x, this.y].filter((i) => i !== null);
    const fields = axes.flatMap((axis) =>
      [0, 1].map((end) => {
        const input = element("input", {
          type: "number",
          min: 0,
          max: this.node.shape[axis],
          step: 1,
          id: `window-${axis}-${end}`,
          value: this.windows[axis][end],
        });
        this.windowInputs.push([axis, end, input]);
        return element(
          "label",
          { class: "field" },
          element("span", { text: `${this.dimName(axis)} ${end ? "to" : "from"}` }),
          input,
        );
      }),
    );
    const show = element("button", {
      type: "button",
      text: "Show",
      onclick: () => this.setWindow(),
    });
    const all = element("button", {
      type: "button",
      text: "Show all",
      onclick: () => {
        this.windows = this.node.shape.map((length) => [0, length]);
        this.update();
      },
    });
    this.windowBox = element(
      "details",
      { class: "window" },
      element("summary", { text: "Show a part" }),
      element("div", { class: "row" }, ...fields, show, all),
    );
    return this.windowBox;
  }

  setWindow() {
    const next = this.windows.map((w) => [...w]);
    for (const [axis, end, input] of this.windowInputs)
      next[axis][end] = Math.floor(Number(input.value));
    const bad = next.some(
      ([from, to], i) => !(from >= 0 && to > from && to <= this.node.shape[i]),
    );
    if (bad) {
      this.say("“From” must be less than “to”, and both must be indices.", true);
      return;
    }
    this.windows = next;
    this.update();
  }

  // Reading.

  axis(i, from, count, step) {
    const found = this.lines.get(this.node.dims[i]);
    return new Axis(this.dimName(i), from, count, step, found?.values ?? null, found?.attrs);
  }

  async loadLines() {
    await Promise.all(
      this.node.dims.map(async (dim) => {
        const coordinate = this.dataset.coordinate(this.node, dim);
        if (!coordinate) return;
        try {
          this.lines.set(dim, {
            values: await this.dataset.line(coordinate),
            attrs: coordinate.attrs,
          });
        } catch (error) {
          this.say(`The values of ${dim} cannot be read: ${error.message}`, true);
        }
      }),
    );
    for (const slider of this.sliders) slider();
  }

  wanted() {
    const axes = [this.x, this.y].filter((i) => i !== null);
    const all = this.windows.map((w, i) => (axes.includes(i) ? w : [this.at[i], this.at[i] + 1]));
    if (fits(this.node, all)) return all;
    const part = fitting(this.node, all, axes);
    if (!fits(this.node, part)) return null;
    axes.forEach((i) => (this.windows[i] = part[i]));
    this.windowBox.open = true;
    this.note =
      `The whole array needs ${bytes(cost(this.node, all))} of chunks, ` +
      `more than the limit of ${bytes(limit)}. This is a part; choose another part below.`;
    return part;
  }

  // update - read the section that is chosen, unless another is chosen meanwhile.
  async update() {
    const turn = ++this.turn;
    this.stop?.abort();
    this.stop = new AbortController();
    this.note = "";
    const windows = this.wanted();
    if (!windows) {
      this.say(`Each chunk is larger than the limit of ${bytes(limit)}: nothing is read.`, true);
      return;
    }
    for (const [axis, end, input] of this.windowInputs) input.value = this.windows[axis][end];
    this.canvas.setAttribute("aria-busy", "true");
    const slow = setTimeout(() => this.say("Reading …"), 300);
    try {
      const got = await section(
        this.dataset,
        this.node,
        windows,
        this.x,
        this.y,
        this.stop.signal,
      );
      if (turn !== this.turn) return;
      this.show(got, windows);
    } catch (error) {
      if (turn !== this.turn || error.name === "AbortError") return;
      this.values = null;
      this.canvas.hidden = true;
      this.readout.textContent = "";
      this.say(`The values cannot be read: ${error.message}`, true);
    } finally {
      clearTimeout(slow);
      if (turn === this.turn) this.canvas.removeAttribute("aria-busy");
    }
  }

  show(got, windows) {
    const { steps, width, height, values } = got;
    const axes = [
      this.axis(this.x, windows[this.x][0], width, steps[0]),
      this.y === null ? null : this.axis(this.y, windows[this.y][0], height, steps[1]),
    ];
    Object.assign(this, { values, axes, width, height });
    this.canvas.hidden = false;
    const notes = [this.note];
    if (Math.max(...steps) > 1) notes.push(`One value in ${Math.max(...steps)} is shown.`);
    if (!extremes(values)) notes.push("All values are missing.");
    this.say(notes.filter(Boolean).join(" "));
    const name = `${title(this.node)} along ${axes
      .filter(Boolean)
      .map((a) => a.name)
      .join(" and ")}`;
    this.canvas.setAttribute("aria-label", name);
    if (this.cursor && (this.cursor.x >= width || this.cursor.y >= height)) this.cursor = null;
    this.paint();
    this.paintChunks();
  }

  // Drawing.

  paint() {
    if (!this.values) return;
    if (this.auto) {
      this.range = extremes(this.values) ?? [0, 1];
      this.lowInput.value = Number(this.range[0].toPrecision(6));
      this.highInput.value = Number(this.range[1].toPrecision(6));
    }
    this.locate = draw(this.canvas, {
      ...this,
      title: title(this.node) + (this.units ? ` (${this.units})` : ""),
      units: this.units,
    });
    this.read();
  }

  read() {
    if (!this.cursor) {
      const ends = extremes(this.values);
      this.readout.textContent = ends
        ? `${number(ends[0])} to ${number(ends[1])} ${this.units}`
        : "no values";
      return;
    }
    const { x, y } = this.cursor;
    const value = this.values[y * this.width + x];
    const where = this.axes.filter(Boolean).map((axis, i) => {
      const at = i ? y : x;
      return `${axis.name}${axis.coordinate ? ` ${axis.label(at, true)}` : ""} [${axis.index(at)}]`;
    });
    const what = Number.isNaN(value) ? "missing" : `${number(value, 8)} ${this.units}`.trim();
    this.readout.textContent = `${where.reverse().join(", ")}: ${what}`;
  }

  point(event) {
    const at = this.values && this.locate?.(event.offsetX, event.offsetY);
    if (!at) return;
    this.cursor = at;
    this.paint();
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (!this.values || !(event.key in moves)) return;
    event.preventDefault();
    const far = event.shiftKey ? 10 : 1;
    const [dx, dy] = moves[event.key].map((d) => d * far);
    const up = this.axes[1]?.coordinate && this.axes[1].rises ? 1 : -1;
    const from = this.cursor ?? { x: Math.floor(this.width / 2), y: Math.floor(this.height / 2) };
    const keep = (v, n) => Math.min(n - 1, Math.max(0, v));
    this.cursor = this.cursor
      ? { x: keep(from.x + dx, this.width), y: keep(from.y + dy * up, this.height) }
      : from;
    this.paint();
  }

  async loadChunks() {
    try {
      this.sizes = await chunks.Sizes.load(this.node.path);
      this.chunks.said.textContent =
        this.sizes?.text ?? "Chunks are listed only if a single dataset is served.";
      this.paintChunks();
    } catch (error) {
      this.chunks.said.textContent = `The chunks cannot be listed: ${error.message}`;
    }
    this.chunks.key.hidden = this.chunks.canvas.hidden;
  }

  paintChunks() {
    if (
      !this.sizes ||
      this.sizes.grid.length !== this.node.shape.length ||
      !this.node.shape.length
    )
      return;
    const fixed = this.sizes.grid.map(
      (n, i) => Math.floor(this.at[i] / Math.ceil(this.node.shape[i] / n || 1)) || 0,
    );
    const axis = this.axes?.[1];
    chunks.draw(
      this.chunks.canvas,
      this.sizes,
      fixed,
      this.x,
      this.y,
      Boolean(axis?.coordinate && axis.rises),
    );
    this.chunks.key.hidden = this.chunks.canvas.hidden;
  }
}
