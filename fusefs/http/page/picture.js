// SPDX-License-Identifier: BSD-3-Clause
// picture.js - a section as a picture with axes and a bar of colours, or as a line.
import { COLOURS, indexOf } from "./colour.js";
import { nice, number } from "./text.js";

const FONT = "13px system-ui, sans-serif";
const BAR = 16; // its width

// extremes - of numbers that are there.
export function extremes(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high && Number.isFinite(low) && Number.isFinite(high) ? [low, high] : null;
}

function style(canvas) {
  const all = getComputedStyle(canvas);
  return Object.fromEntries(
    ["text", "muted", "line", "missing", "accent", "panel"].map((name) => [
      name,
      all.getPropertyValue(`--${name}`).trim(),
    ]),
  );
}

// degrees - both axes are angles: a degree is as long on either.
const degrees = (axis) => /^degree/.test(axis?.attrs.units ?? "");

// place - where everything goes, in CSS pixels.
function place(canvas, { axes: [x, y], values, flat }) {
  const width = Math.max(240, canvas.parentElement.clientWidth);
  const narrow = width < 520;
  const bar = !flat;
  const left = narrow ? 52 : 66;
  const right = bar && !narrow ? 92 : 14;
  const inner = width - left - right;
  let height = narrow ? 220 : 380;
  if (!flat && y && degrees(x) && degrees(y)) {
    const span = (a) => Math.abs((a.even?.delta ?? 1) * a.count);
    height = Math.min(560, Math.max(140, (inner * span(y)) / span(x)));
  } else if (!flat && y) {
    height = Math.min(460, Math.max(180, inner * Math.min(1, y.count / x.count)));
  }
  const top = 10;
  const bottom = 50 + (bar && narrow ? 58 : 0);
  return {
    width,
    height: height + top + bottom,
    narrow,
    bar,
    values,
    plot: { x: left, y: top, width: inner, height },
  };
}

// raster - one pixel for a value.
function raster({ values, width, height }, [low, high], up) {
  const made = document.createElement("canvas");
  made.width = width;
  made.height = height;
  const pen = made.getContext("2d");
  const image = pen.createImageData(width, height);
  for (let row = 0; row < height; row++) {
    const from = (up ? height - 1 - row : row) * width;
    for (let column = 0; column < width; column++) {
      const value = values[from + column];
      if (Number.isNaN(value)) continue; // transparent
      const at = (row * width + column) * 4;
      const [red, green, blue] = COLOURS[indexOf(value, low, high)];
      image.data[at] = red;
      image.data[at + 1] = green;
      image.data[at + 2] = blue;
      image.data[at + 3] = 255;
    }
  }
  pen.putImageData(image, 0, 0);
  return made;
}

function frame(pen, plot, colours) {
  pen.strokeStyle = colours.muted;
  pen.lineWidth = 1;
  pen.strokeRect(plot.x - 0.5, plot.y - 0.5, plot.width + 1, plot.height + 1);
}

function ticksX(pen, plot, axis, colours, spot) {
  pen.textAlign = "center";
  pen.textBaseline = "top";
  const wide = axis.time ? 110 : 70;
  let end = -Infinity;
  for (const [at, text] of axis.ticks(Math.max(2, Math.floor(plot.width / wide)))) {
    const px = spot(at);
    const half = pen.measureText(text).width / 2;
    pen.fillStyle = colours.muted;
    pen.fillRect(px - 0.5, plot.y + plot.height, 1, 5);
    if (px - half < end + 6) continue;
    end = px + half;
    pen.fillStyle = colours.text;
    pen.fillText(text, Math.min(px, plot.x + plot.width + 12 - half), plot.y + plot.height + 8);
  }
  pen.fillStyle = colours.muted;
  pen.fillText(axis.title, plot.x + plot.width / 2, plot.y + plot.height + 28, plot.width);
}

function ticksY(pen, plot, ticks, title, colours, spot) {
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const [at, text] of ticks) {
    const py = spot(at);
    pen.fillStyle = colours.muted;
    pen.fillRect(plot.x - 5, py - 0.5, 5, 1);
    pen.fillStyle = colours.text;
    pen.fillText(text, plot.x - 8, py, plot.x - 20);
  }
  pen.save();
  pen.translate(10, plot.y + plot.height / 2);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillStyle = colours.muted;
  pen.fillText(title, 0, 0, plot.height);
  pen.restore();
}

function bar(pen, at, [low, high], units, colours) {
  const { plot, narrow } = at;
  const box = narrow
    ? { x: plot.x, y: plot.y + plot.height + 54, width: plot.width, height: BAR }
    : { x: plot.x + plot.width + 18, y: plot.y, width: BAR, height: plot.height };
  const long = narrow ? box.width : box.height;
  for (let i = 0; i < long; i++) {
    const [red, green, blue] = COLOURS[Math.min(255, Math.floor((i / long) * 256))];
    pen.fillStyle = `rgb(${red},${green},${blue})`;
    if (narrow) pen.fillRect(box.x + i, box.y, 1.5, BAR);
    else pen.fillRect(box.x, box.y + long - 1 - i, BAR, 1.5);
  }
  frame(pen, box, colours);
  pen.fillStyle = colours.text;
  pen.textAlign = narrow ? "center" : "left";
  pen.textBaseline = narrow ? "top" : "middle";
  for (const value of nice(low, high, narrow ? 4 : 6)) {
    const part = high > low ? (value - low) / (high - low) : 0.5;
    if (narrow) pen.fillText(number(value), box.x + part * long, box.y + BAR + 5);
    else pen.fillText(number(value), box.x + BAR + 5, box.y + (1 - part) * long, 50);
  }
  pen.fillStyle = colours.muted;
  pen.textAlign = narrow ? "right" : "left";
  pen.textBaseline = "top";
  if (narrow) pen.fillText(units, box.x + long, box.y + BAR + 20);
  else pen.fillText(units, box.x, box.y + long + 8, 70);
}

// graph - a line through values of one dimension.
function graph(pen, at, { values, axes: [x], range: [low, high], title }, colours) {
  const { plot } = at;
  const pad = high > low ? (high - low) * 0.04 : Math.abs(high) * 0.05 || 1;
  const [from, to] = [low - pad, high + pad];
  const spotX = (i) => plot.x + (x.count < 2 ? 0.5 : i / (x.count - 1)) * plot.width;
  const spotY = (v) => plot.y + plot.height - ((v - from) / (to - from)) * plot.height;
  const ticks = nice(from, to, 6).map((v) => [v, number(v)]);
  pen.fillStyle = colours.line;
  for (const [v] of ticks) pen.fillRect(plot.x, spotY(v) - 0.5, plot.width, 1);
  ticksX(pen, plot, x, colours, spotX);
  ticksY(pen, plot, ticks, title, colours, spotY);
  pen.save();
  pen.beginPath();
  pen.rect(plot.x, plot.y, plot.width, plot.height);
  pen.clip();
  pen.strokeStyle = pen.fillStyle = colours.accent;
  pen.lineWidth = 2;
  pen.beginPath();
  let on = false;
  values.forEach((value, i) => {
    if (Number.isNaN(value)) on = false;
    else if (on) pen.lineTo(spotX(i), spotY(value));
    else (pen.moveTo(spotX(i), spotY(value)), (on = true));
  });
  pen.stroke();
  if (x.count <= 60) {
    values.forEach((value, i) => {
      if (Number.isNaN(value)) return;
      pen.beginPath();
      pen.arc(spotX(i), spotY(value), 3, 0, 7);
      pen.fill();
    });
  }
  pen.restore();
  frame(pen, plot, colours);
  return { spotX, spotY: (_, value) => spotY(value) };
}

function map(pen, at, picture, colours) {
  const { plot } = at;
  const [x, y] = picture.axes;
  const up = Boolean(y.coordinate) && y.rises;
  const spotX = (i) => plot.x + ((i + 0.5) / x.count) * plot.width;
  const spotY = (i) => plot.y + ((up ? y.count - i - 0.5 : i + 0.5) / y.count) * plot.height;
  pen.fillStyle = colours.missing;
  pen.fillRect(plot.x, plot.y, plot.width, plot.height);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(raster(picture, picture.range, up), plot.x, plot.y, plot.width, plot.height);
  frame(pen, plot, colours);
  ticksX(pen, plot, x, colours, spotX);
  ticksY(pen, plot, y.ticks(Math.max(3, Math.floor(plot.height / 45))), y.title, colours, spotY);
  bar(pen, at, picture.range, picture.units, colours);
  return { spotX, spotY, up };
}

function cross(pen, { plot }, spots, cursor, value, colours) {
  const px = Math.round(spots.spotX(cursor.x)) - 0.5;
  const py = Math.round(spots.spotY(cursor.y, value)) - 0.5;
  pen.strokeStyle = colours.panel;
  for (const width of [3, 1]) {
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(px, plot.y);
    pen.lineTo(px, plot.y + plot.height);
    if (Number.isFinite(py)) {
      pen.moveTo(plot.x, py);
      pen.lineTo(plot.x + plot.width, py);
    }
    pen.stroke();
    pen.strokeStyle = colours.text;
  }
}

// draw - picture: { values, width, height, axes: [x, y or null], range, title, units, cursor }.
// Returns a function from a point on the canvas to { x, y }, positions in the picture, or null.
export function draw(canvas, picture) {
  const colours = style(canvas);
  const flat = !picture.axes[1];
  const at = place(canvas, { ...picture, flat });
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(at.width * ratio);
  canvas.height = Math.round(at.height * ratio);
  canvas.style.width = `${at.width}px`;
  canvas.style.height = `${at.height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = FONT;
  const spots = (flat ? graph : map)(pen, at, picture, colours);
  const { cursor, values, width } = picture;
  if (cursor) cross(pen, at, spots, cursor, values[cursor.y * width + cursor.x], colours);
  return (px, py) => {
    const { plot } = at;
    const [x, y] = picture.axes;
    const partX = (px - plot.x) / plot.width;
    const partY = (py - plot.y) / plot.height;
    if (partX < 0 || partX > 1 || partY < 0 || partY > 1) return null;
    if (flat) return { x: Math.round(partX * (x.count - 1)), y: 0 };
    const row = Math.min(y.count - 1, Math.floor(partY * y.count));
    return {
      x: Math.min(x.count - 1, Math.floor(partX * x.count)),
      y: spots.up ? y.count - 1 - row : row,
    };
  };
}
