// SPDX-License-Identifier: BSD-3-Clause
// page.js - the page: which dataset, which variable.
import { Dataset } from "./data.js";
import { json } from "./http.js";
import { attributes, code, summary } from "./details.js";
import { element } from "./text.js";
import * as tree from "./tree.js";
import { View } from "./view.js";

const at = (id) => document.getElementById(id);
let dataset = null;
let view = null;

function say(text, isError = false) {
  at("message").textContent = text;
  at("message").classList.toggle("error", isError);
}

function showGroup(node) {
  at("view").replaceChildren(
    element("h2", { text: node.attrs.title ?? (node.name || "The root group") }),
    element("p", { class: "muted", text: node.path }),
    element(
      "div",
      { class: "cards" },
      summary(node, choose),
      attributes(node),
      code(dataset.base, dataset.zarr, node.path),
    ),
  );
}

// show - the node of a path.
async function show(path) {
  const node = dataset.find(path) ?? dataset.root;
  view?.close();
  view = null;
  say("");
  tree.select(at("tree"), node.path);
  document.title = `${node.name || at("source").textContent} · nczarrfs`;
  if (node.kind === "group") {
    showGroup(node);
    return;
  }
  view = new View(dataset, node, at("view"), say);
  await view.open();
}

function choose(path) {
  const hash = `#${encodeURI(path)}`;
  if (location.hash === hash) show(path);
  else location.hash = hash; // and hashchange shows it
}

const chosen = () => {
  try {
    return decodeURI(location.hash.slice(1));
  } catch {
    return "/";
  }
};

// first - the variable that is worth a look: the one with most values of those with two dimensions.
function first(node, best = null) {
  for (const child of node.children ?? []) {
    if (child.kind === "group") best = first(child, best);
    else {
      const size = (n) => n.shape.reduce((a, b) => a * b, 1) * (n.shape.length > 1 ? 1e6 : 1);
      if (!/string|bytes|raw|compound/.test(child.dtype) && (!best || size(child) > size(best)))
        best = child;
    }
  }
  return best;
}

async function open(name, zarr) {
  say("Reading …");
  dataset = await Dataset.load(name ? `/data/${encodeURIComponent(name)}/` : "/data/", zarr);
  dataset.zarr = zarr;
  tree.show(at("tree"), dataset.root, choose);
  const path = chosen();
  await show(path && dataset.find(path) ? path : (first(dataset.root)?.path ?? "/"));
}

function offer(names) {
  at("dataset-choice").hidden = false;
  at("dataset").replaceChildren(
    ...names.map((name) => element("option", { value: name, text: name })),
  );
  at("dataset").onchange = () => {
    history.replaceState(null, "", location.pathname);
    open(at("dataset").value).catch(fail);
  };
}

function fail(error) {
  say(error.message, true);
}

async function start() {
  const about = await json("/api/about");
  const name = about.source.split("/").pop() || about.source;
  at("source").textContent = name;
  at("about").textContent =
    `${about.format === "directory" ? "Directory" : about.format} · ${about.source}`;
  at("footer").append(
    `nczarrfs ${about.version} · `,
    element("a", { href: "/data/", text: "files of the Zarr store" }),
  );
  document.title = `${name} · nczarrfs`;
  for (const note of about.notes) at("footer").append(element("p", { text: note }));
  window.addEventListener("hashchange", () => show(chosen()).catch(fail));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view?.paint?.());
  if (about.zarr) await open("", about.zarr);
  else if (about.datasets.length) {
    offer(about.datasets);
    await open(about.datasets[0]);
  } else say("There is no Zarr store to show. The files are under /data/.");
}

start().catch(fail);
