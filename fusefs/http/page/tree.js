// SPDX-License-Identifier: BSD-3-Clause
// tree.js - groups and variables as an ARIA tree: one stop for Tab, arrows within.
import { element } from "./text.js";

function row(node, choose) {
  const item = element("li", { role: "treeitem", tabindex: "-1", "data-path": node.path });
  const label = element("span", { class: "label" });
  if (node.kind === "group") {
    item.setAttribute("aria-expanded", "true");
    label.append(element("span", { class: "name", text: node.name || "/" }));
    item.append(
      label,
      element("ul", { role: "group" }, ...node.children.map((c) => row(c, choose))),
    );
  } else {
    const shape = node.shape.length
      ? node.shape.map((n, i) => (node.dims[i] ? `${node.dims[i]} ${n}` : n)).join(" × ")
      : "scalar";
    label.append(
      element("span", { class: "name", text: node.name }),
      element("span", { class: "shape", text: shape }),
      element("span", { class: "dtype", text: node.dtype }),
    );
    item.append(label);
    item.setAttribute("aria-label", `${node.name}, ${shape}, ${node.dtype}`);
  }
  item.setAttribute("aria-selected", "false");
  return item;
}

function visible(tree) {
  return [...tree.querySelectorAll("[role=treeitem]")].filter(
    (item) => !item.parentElement.closest('[role=treeitem][aria-expanded="false"]'),
  );
}

function focus(tree, item) {
  if (!item) return;
  for (const other of tree.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
  item.tabIndex = 0;
  item.focus();
}

function expand(item, open) {
  if (item.hasAttribute("aria-expanded")) item.setAttribute("aria-expanded", String(open));
}

function key(tree, event, choose) {
  const item = event.target.closest("[role=treeitem]");
  if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
  const items = visible(tree);
  const at = items.indexOf(item);
  const open = item.getAttribute("aria-expanded");
  const typed = event.key.length === 1 && event.key !== " " ? event.key.toLowerCase() : null;
  if (event.key === "ArrowDown") focus(tree, items[at + 1]);
  else if (event.key === "ArrowUp") focus(tree, items[at - 1]);
  else if (event.key === "Home") focus(tree, items[0]);
  else if (event.key === "End") focus(tree, items[items.length - 1]);
  else if (event.key === "ArrowRight")
    open === "false" ? expand(item, true) : open && focus(tree, items[at + 1]);
  else if (event.key === "ArrowLeft") {
    if (open === "true") expand(item, false);
    else focus(tree, item.parentElement.closest("[role=treeitem]"));
  } else if (event.key === "Enter" || event.key === " ") choose(item.dataset.path);
  else if (typed) {
    const name = (i) => i.querySelector(".name").textContent.toLowerCase();
    focus(
      tree,
      [...items.slice(at + 1), ...items.slice(0, at)].find((i) => name(i).startsWith(typed)),
    );
  } else return;
  event.preventDefault();
}

// show - fill the list. choose(path) is called when somebody picks a node.
export function show(tree, root, choose) {
  tree.replaceChildren(row(root, choose));
  const first = tree.querySelector("[role=treeitem]");
  if (first) first.tabIndex = 0;
  tree.onkeydown = (event) => key(tree, event, choose);
  tree.onclick = (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    focus(tree, item);
    choose(item.dataset.path);
  };
}

// reveal - scroll the list, and nothing else, to a node.
function reveal(item) {
  const list = item.closest("nav");
  const place = item.querySelector(".label").getBoundingClientRect();
  const frame = list.getBoundingClientRect();
  if (place.top < frame.top || place.bottom > frame.bottom)
    list.scrollTop += place.top - frame.top - frame.height / 3;
}

// select - mark the node that is shown.
export function select(tree, path) {
  for (const item of tree.querySelectorAll("[role=treeitem]")) {
    const is = item.dataset.path === path;
    item.setAttribute("aria-selected", String(is));
    if (is) {
      for (const other of tree.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
      item.tabIndex = 0;
      reveal(item);
    }
  }
}
