"use strict";
// The state of the page is in the fragment of its address, so that a copied address shows the same.
const view = {
  get: (key) => new URLSearchParams(location.hash.slice(1)).get(key),
  // Changes keys; an empty value removes one. `open` adds an entry to the browser's history.
  set(changes, open = false) {
    const now = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of Object.entries(changes)) value ? now.set(key, value) : now.delete(key);
    const address = `#${now}`;
    if (address !== location.hash) history[open ? "pushState" : "replaceState"](null, "", address);
  },
};

// An element with properties, text and children; text is never parsed as markup.
const make = (name, properties = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};

// Adds a value to the list of a key.
const gather = (groups, key, value) => {
  const found = groups.get(key);
  found ? found.push(value) : groups.set(key, [value]);
};

// The value of a data element, decompressed if needed.
const unpack = async (id) => {
  const node = document.getElementById(id);
  if (node.dataset.packed === undefined) return JSON.parse(node.textContent);
  const bytes = Uint8Array.from(atob(node.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};

const isTyping = (target) => /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
const HEATS = 8;
// Value → share of the others that are better; so one odd value colours itself, not all others.
const sharesOfBetter = (values, worse) => {
  const told = worse ? values.filter(Number.isFinite) : [];
  told.sort((a, b) => (worse === "less" ? b - a : a - b));
  const shares = new Map();
  told.forEach((value, n) => shares.has(value) || shares.set(value, n / (told.length - 1 || 1)));
  return shares;
};

// A class from h0 to h8 for a value between the least and the most.
const heatOf = (value, least, most) =>
  most > least ? `h${Math.round((HEATS * (value - least)) / (most - least))}` : "h0";
