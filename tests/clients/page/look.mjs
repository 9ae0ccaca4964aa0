// SPDX-License-Identifier: BSD-3-Clause
// look.mjs - the page of `nczarrfs serve` in a browser, as somebody without a mouse uses it. Prints
// what it saw as JSON; tests/cases/commands/test_page.py judges it.
//   node look.mjs MODULES CHROMIUM URL PICTURES
import { createRequire } from "node:module";
import path from "node:path";

const [modules, executablePath, url, pictures] = process.argv.slice(2);
const { chromium } = createRequire(path.join(modules, "x.js"))("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const seen = { requests: [], problems: [], values: [] };

async function open(width, height, scheme, hash = "") {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme });
  page.on(
    "console",
    (m) => ["error", "warning"].includes(m.type()) && seen.problems.push(m.text()),
  );
  page.on("pageerror", (e) => seen.problems.push(e.message));
  page.on("request", (r) => seen.requests.push(r.url()));
  await page.goto(url + hash);
  await ready(page);
  return page;
}

const ready = (page) =>
  page.waitForFunction(
    () =>
      document.querySelector("#view h2") &&
      !document.querySelector("[aria-busy]") &&
      document.getElementById("message").textContent !== "Reading …" &&
      (!document.getElementById("picture") || document.getElementById("readout").textContent),
  );

const text = (page, what) => page.textContent(what);

// reach - Tab until the focus is on what the selector finds.
async function reach(page, selector) {
  for (let i = 0; i < 60; i++) {
    if (await page.evaluate((s) => Boolean(document.activeElement?.matches(s)), selector)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab never reaches ${selector}`);
}

async function value(page, name) {
  await page.waitForFunction(() => document.getElementById("readout")?.textContent);
  seen.values.push([name, await text(page, "#readout")]);
}

async function byKeyboard(page) {
  await reach(page, "[role=treeitem]");
  await page.keyboard.press("Home");
  await page.keyboard.type("temp"[0]); // the first that begins with t, from there on
  for (let i = 0; i < 40; i++) {
    const at = await page.evaluate(() => document.activeElement.dataset.path);
    if (at === "/temp") break;
    await page.keyboard.press("ArrowDown");
  }
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.title.startsWith("temp"));
  await ready(page);
  await reach(page, "#picture");
  seen.outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineWidth);
  await page.keyboard.press("ArrowRight"); // the middle
  await value(page, "middle");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowUp");
  await value(page, "moved");
  await reach(page, "#slider-0");
  const before = await text(page, "#readout");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((b) => document.getElementById("readout").textContent !== b, before);
  await ready(page);
  await value(page, "slid");
  seen.slider = await page.evaluate(() => document.activeElement.getAttribute("aria-valuetext"));
}

// pixel - colour of the picture at the position that the mouse is at, and its readout.
async function underMouse(page) {
  const box = await page.locator("#picture").boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + box.height * 0.3);
  await value(page, "mouse");
  seen.colours = await page.evaluate(() => {
    const canvas = document.getElementById("picture");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const all = new Set();
    for (let i = 0; i < data.length; i += 40)
      all.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return all.size;
  });
}

// judge - what can be said of a page without eyes.
const judge = (page) =>
  page.evaluate(() => {
    const light = (c) => {
      const parts = c
        .match(/[\d.]+/g)
        .slice(0, 3)
        .map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const behind = (e) => {
      for (; e; e = e.parentElement) {
        const colour = getComputedStyle(e).backgroundColor;
        if (!/^rgba\(.*, 0\)$/.test(colour)) return colour;
      }
      return "rgb(255,255,255)";
    };
    const contrasts = [...document.querySelectorAll("body *")]
      .filter(
        (e) => e.offsetParent && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()),
      )
      .map((e) => {
        const pair = [light(getComputedStyle(e).color), light(behind(e))].sort((a, b) => b - a);
        return [(pair[0] + 0.05) / (pair[1] + 0.05), e.textContent.slice(0, 40)];
      });
    return {
      lang: document.documentElement.lang,
      h1: document.querySelectorAll("h1").length,
      title: document.title,
      unlabelled: [...document.querySelectorAll("input, select")]
        .filter((e) => !e.labels.length)
        .map((e) => e.id),
      nameless: [...document.querySelectorAll("button, [role=img]:not([hidden])")]
        .filter((e) => !e.textContent.trim() && !e.getAttribute("aria-label"))
        .map((e) => e.outerHTML),
      contrast: contrasts.sort((a, b) => a[0] - b[0])[0],
      overflow: document.documentElement.scrollWidth - window.innerWidth,
      ids: [...document.querySelectorAll("[id]")]
        .map((e) => e.id)
        .filter((v, i, all) => all.indexOf(v) !== i),
    };
  });

const shot = (page, name) =>
  page.screenshot({ path: path.join(pictures, `${name}.png`), fullPage: true });

try {
  seen.judged = {};
  const wide = await open(1280, 900, "light");
  seen.first = await wide.title();
  await byKeyboard(wide);
  await underMouse(wide);
  seen.judged.wide = await judge(wide);
  seen.chunks = await text(wide, "#chunk-text");
  await shot(wide, "wide");
  await wide.evaluate(() => (location.hash = "#/mean"));
  await wide.waitForFunction(() => document.title.startsWith("mean"));
  await ready(wide);
  await wide.focus("#picture");
  await wide.keyboard.press("ArrowLeft");
  await value(wide, "line");
  await shot(wide, "line");
  await wide.evaluate(() => (location.hash = "#/bad"));
  await wide.waitForFunction(() =>
    document.getElementById("message").textContent.includes("cannot be read"),
  );
  seen.error = await text(wide, "#message");
  await shot(wide, "error");
  const expected = /500 \(Internal Server Error\)/; // of the damaged chunk, by the browser itself
  seen.problems = seen.problems.filter((p) => !expected.test(p));
  const narrow = await open(320, 700, "dark", "#/temp");
  seen.judged.narrow = await judge(narrow);
  await shot(narrow, "narrow");
  const group = await open(1280, 700, "dark", "#/ocean");
  seen.judged.group = await judge(group);
  await shot(group, "group");
  const texts = await open(800, 700, "light", "#/ocean/names");
  await value(texts, "texts");
} catch (error) {
  seen.failed = error.message;
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
