// SPDX-License-Identifier: BSD-3-Clause
// text.js - numbers, sizes and times for people.

// number - short, but enough digits to tell neighbours apart.
export function number(value, digits = 6) {
  if (typeof value === "bigint") return String(value);
  if (value === null || value === undefined) return "missing";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value).replace("-", "−");
  const text = Number(value.toPrecision(digits));
  const plain = Math.abs(text) >= 1e-4 && Math.abs(text) < 1e9;
  return (plain ? String(text) : text.toExponential()).replace(/-/g, "−");
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${unit && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

export function plural(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

const SECONDS = {
  second: 1,
  seconds: 1,
  sec: 1,
  secs: 1,
  s: 1,
  minute: 60,
  minutes: 60,
  min: 60,
  mins: 60,
  hour: 3600,
  hours: 3600,
  hr: 3600,
  hrs: 3600,
  h: 3600,
  day: 86400,
  days: 86400,
  d: 86400,
  millisecond: 1e-3,
  milliseconds: 1e-3,
  msec: 1e-3,
  ms: 1e-3,
  microsecond: 1e-6,
  microseconds: 1e-6,
};
const CALENDARS = ["standard", "gregorian", "proleptic_gregorian"];

const CLOCK = String.raw`(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}(?:\.\d*)?))?)?`;
const ZONE = String.raw`(Z|UTC|[+-]\d{1,2}(?::?\d{2})?)`;
const DAY = String.raw`(-?\d{1,6})-(\d{1,2})-(\d{1,2})`;
const SINCE = new RegExp(
  String.raw`^\s*([a-z]+)\s+since\s+${DAY}(?:[T\s]+${CLOCK})?\s*${ZONE}?\s*$`,
  "i",
);

// timeOf - CF's "hours since 2000-01-01" as a function from numbers to milliseconds of UTC; null:
// no time, or a calendar that Date does not have.
export function timeOf(attrs) {
  const calendar = String(attrs.calendar ?? "standard").toLowerCase();
  const found = SINCE.exec(String(attrs.units ?? ""));
  if (!found || !CALENDARS.includes(calendar)) return null;
  const scale = SECONDS[found[1].toLowerCase()];
  const year = Number(found[2]);
  if (!scale || (calendar !== "proleptic_gregorian" && year < 1583)) return null;
  const start = new Date(0);
  start.setUTCFullYear(year, Number(found[3]) - 1, Number(found[4]));
  start.setUTCHours(
    Number(found[5] ?? 0),
    Number(found[6] ?? 0),
    0,
    Number(found[7] ?? 0) * 1000,
  );
  const zone = /^([+-])(\d{1,2}):?(\d{2})?$/.exec(found[8] ?? "");
  const shift = zone
    ? (zone[1] === "-" ? -1 : 1) * (Number(zone[2]) * 60 + Number(zone[3] ?? 0))
    : 0;
  const begin = start.getTime() - shift * 60000;
  return (value) => begin + Number(value) * scale * 1000;
}

// date - without what is zero.
export function date(ms) {
  const when = new Date(ms);
  if (Number.isNaN(when.getTime())) return "no date";
  const text = when.toISOString();
  if (text.endsWith("T00:00:00.000Z")) return text.slice(0, -14);
  return text.replace("T", " ").replace(/(:00)?\.\d+Z$/, "");
}

// nice - round numbers from low to high, about `count` of them.
export function nice(low, high, count, steps = [1, 2, 2.5, 5, 10]) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = steps.map((n) => n * power).find((n) => n >= rough * 0.999) ?? rough;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

export function element(name, props = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "text") made.textContent = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}
