// Shows the list or one kernel.
const about = JSON.parse(document.getElementById("about").textContent);
let table = null;
let pivot = null;
let code = null;
let shown = null;

const themes = ["", "light", "dark"];
const paint = () => {
  const theme = view.get("theme") || "";
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
};
document.getElementById("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = view.get("theme") || (dark ? "dark" : "light");
  const other = now === "dark" ? "light" : "dark";
  view.set({ theme: other === (dark ? "dark" : "light") ? "" : other });
  paint();
});

const open = (id) => {
  view.set({ k: id, line: "", files: "" }, true);
  restore();
};

const showKernel = async (id) => {
  const host = document.getElementById("kernel");
  if (shown !== id) {
    shown = id;
    code = null;
    const [markup, lines] = await Promise.all([unpack(`page-${id}`), unpack(`code-${id}`)]);
    if (shown !== id) return; // another kernel was opened meanwhile
    const parts = document.createElement("template");
    parts.innerHTML = markup;
    host.replaceChildren(parts.content);
    host.hidden = false;
    const title = host.querySelector("h1");
    document.title = title.textContent;
    if (!about.alone) {
      scrollTo({ top: 0, behavior: "instant" });
      title.tabIndex = -1;
      title.focus({ preventScroll: true });
    }
    code = new CodeElement(host.querySelector("[data-code]"), lines);
  } else code?.restore();
};

const heading = document.title;
let listTop = 0; // how far the list was scrolled when a kernel was opened
const restore = async () => {
  paint();
  if (!document.getElementById("list").hidden) listTop = scrollY;
  const asked = view.get("k");
  const id = about.alone ? about.leaves[0] : about.leaves.includes(asked) ? asked : null;
  document.getElementById("list").hidden = id !== null;
  document.getElementById("kernel").hidden = id === null;
  const trail = document.getElementById("trail");
  trail.replaceChildren();
  if (id === null) {
    const from = shown;
    shown = null;
    document.title = heading;
    if (from !== null) scrollTo({ top: listTop, behavior: "instant" });
    if (table) table.restore();
    else {
      const host = document.querySelector("[data-table]");
      table = new DataTable(host, await unpack(host.dataset.table), open);
    }
    const grid = document.querySelector("[data-pivot]");
    if (grid) pivot ? pivot.restore() : (pivot = new PivotElement(grid, await unpack(grid.dataset.pivot)));
  } else {
    if (!about.alone) {
      const back = make("a", { href: "#" }, `← all ${about.leaves.length}`);
      back.addEventListener("click", (event) => {
        event.preventDefault();
        view.set({ k: "", line: "", files: "" }, true);
        restore();
      });
      trail.append(back);
    }
    await showKernel(id);
  }
  zoom();
  document.documentElement.dataset.ready = id ?? "list";
};

// The selected view of a picture.
const zoom = () => {
  for (const choice of document.querySelectorAll("[data-zoom]")) {
    const id = choice.dataset.zoom;
    const asked = view.get(`zoom-${id}`);
    const at = Math.max(0, [...choice.options].findIndex((option) => option.value === asked));
    choice.selectedIndex = at;
    document.querySelectorAll(`[data-picture="${id}"]`).forEach((one, n) => (one.hidden = n !== at));
  }
};
document.addEventListener("change", (event) => {
  const id = event.target.dataset?.zoom;
  if (!id) return;
  view.set({ [`zoom-${id}`]: event.target.selectedIndex ? event.target.value : "" });
  zoom();
});

document.addEventListener("click", (event) => {
  const chip = event.target.closest?.("[data-filter]");
  if (chip) {
    const words = (view.get("filter") || "").split(/\s+/).filter(Boolean);
    const word = chip.dataset.filter;
    table.change({ filter: (words.includes(word) ? words.filter((one) => one !== word) : [...words, word]).join(" ") });
  }
  const goes = event.target.closest?.("[data-go]");
  if (goes && code) {
    const side = goes.closest("[data-side]")?.dataset.side;
    const [, name, number] = /^(.*):(\d+)$/.exec(goes.dataset.go);
    if (code.goTo(side ? `${side} ${name}` : name, Number(number), true)) code.host.scrollIntoView({ block: "start" });
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches?.("g[data-go]")) event.target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  if (event.key !== "/" || isTyping(event.target)) return;
  const field = [...document.querySelectorAll("input.filter")].find((one) => one.offsetParent);
  if (!field) return;
  event.preventDefault();
  field.focus();
});
addEventListener("hashchange", restore);
addEventListener("popstate", restore);
restore();
