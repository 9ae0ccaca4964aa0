// SPDX-License-Identifier: BSD-3-Clause
// axes.js - one dimension of a picture: what its indices mean, and where its ticks are.
import { date, nice, number, timeOf } from "./text.js";

const ANGLES = [1, 1.5, 3, 4.5, 6, 9, 10]; // of ten degrees

// Axis - along a dimension from index `from`, `count` values `step` apart. coordinate: its numbers,
// or null; attrs: the coordinate's.
export class Axis {
  constructor(name, from, count, step, coordinate, attrs) {
    Object.assign(this, { name, from, count, step, coordinate, attrs: attrs ?? {} });
    this.time = coordinate ? timeOf(this.attrs) : null;
  }

  get title() {
    const title = this.attrs.long_name ?? this.name;
    if (!this.coordinate) return `${title} (index)`;
    return this.time || !this.attrs.units ? title : `${title} (${this.attrs.units})`;
  }

  index(i) {
    return this.from + i * this.step;
  }

  // label - of position i.
  label(i, units = false) {
    const index = this.index(i);
    if (!this.coordinate) return String(index);
    const value = this.coordinate[index];
    if (this.time) return date(this.time(value));
    return units && this.attrs.units ? `${number(value)} ${this.attrs.units}` : number(value);
  }

  // rises - false: larger values come first.
  get rises() {
    if (!this.coordinate || this.count < 2) return true;
    return this.coordinate[this.index(this.count - 1)] >= this.coordinate[this.from];
  }

  // even - value and difference of neighbours, where all differences are the same; else null.
  get even() {
    if (!this.coordinate || this.time || this.count < 2) return null;
    const first = this.coordinate[this.from];
    const last = this.coordinate[this.index(this.count - 1)];
    const delta = (last - first) / (this.count - 1);
    for (let i = 0; i < this.count; i++) {
      const off = this.coordinate[this.index(i)] - (first + i * delta);
      if (!(Math.abs(off) <= Math.abs(delta) * 0.05)) return null;
    }
    return delta ? { first, delta } : null;
  }

  // ticks - about n of them: [position, text].
  ticks(n) {
    const even = this.even;
    if (even) {
      const ends = [even.first, even.first + even.delta * (this.count - 1)].sort((a, b) => a - b);
      const angles = /^degree/.test(this.attrs.units ?? "") && (ends[1] - ends[0]) / n > 6;
      return nice(ends[0], ends[1], n, angles ? ANGLES : undefined).map((v) => [
        (v - even.first) / even.delta,
        number(v),
      ]);
    }
    const spots = nice(0, this.count - 1, Math.min(n, this.count - 1))
      .map(Math.round)
      .filter((v, i, all) => v < this.count && v !== all[i - 1]);
    return spots.map((i) => [i, this.label(i)]);
  }
}
