// SPDX-License-Identifier: BSD-3-Clause
// colour.js - colours of equal steps: lightness grows evenly in OKLab while the hue turns from
// violet to yellow. What sRGB has no colour for loses chroma, not lightness.

const HUES = [
  [0, 300],
  [0.35, 245],
  [0.65, 165],
  [1, 105],
]; // degrees
const CHROMA = [
  [0, 0.12],
  [0.3, 0.13],
  [0.7, 0.15],
  [1, 0.17],
];
const DARK = 0.24;
const LIGHT = 0.93;

// (OKLab to linear sRGB: B. Ottosson, "A perceptual color space for image processing", 2020)
function linear(lightness, chroma, hue) {
  const angle = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(angle);
  const b = chroma * Math.sin(angle);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

function between(points, at) {
  const i = Math.max(
    1,
    points.findIndex(([x]) => x >= at),
  );
  const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
  return y0 + ((y1 - y0) * (at - x0)) / (x1 - x0);
}

function colour(at) {
  const lightness = DARK + (LIGHT - DARK) * at;
  let chroma = between(CHROMA, at);
  let rgb = linear(lightness, chroma, between(HUES, at));
  while (chroma > 0 && rgb.some((c) => c < 0 || c > 1)) {
    chroma -= 0.002;
    rgb = linear(lightness, chroma, between(HUES, at));
  }
  return rgb.map((c) => {
    const clear = Math.min(1, Math.max(0, c));
    return Math.round(
      255 * (clear <= 0.0031308 ? 12.92 * clear : 1.055 * clear ** (1 / 2.4) - 0.055),
    );
  });
}

// COLOURS - 256 of red, green and blue.
export const COLOURS = Array.from({ length: 256 }, (_, i) => colour(i / 255));

// indexOf - which of them a value has between low and high.
export function indexOf(value, low, high) {
  if (!(high > low)) return 128;
  return Math.min(255, Math.max(0, Math.floor(((value - low) / (high - low)) * 256)));
}
