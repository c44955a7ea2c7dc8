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

let records = null; // the rows and findings of kernels without pictures and code
const loadRecords = async () => {
  if (records || !about.brief) return records;
  const [rows, findings] = await Promise.all([unpack("table"), unpack("findings")]);
  return (records = { rows, findings, lines: new Map(rows.lines.map((line) => [line.id, line])) });
};

// The page of a kernel with its findings and the facts of its row.
const briefPage = (id) => {
  const { rows, findings, lines } = records;
  const cells = lines.get(id).cells;
  const told = findings[id].map((one) => make(
    "li", {}, make("p", { className: "message" }, make("span", { className: `level ${one.level}` }, one.level === "warning" ? "▲ warning" : "● note"), one.message),
    make("p", { className: "soft" }, make("span", { className: "code" }, `${one.code} ${one.name}`), ` · ${one.evidence}`),
  ));
  const facts = rows.columns.flatMap((column, at) => {
    const text = [cells[at] ?? ""].flat().join(" ");
    return text === "" ? [] : [make("div", {}, make("dt", {}, column.heading), make("dd", {}, `${text} `, make("span", { className: "soft" }, column.is_number ? column.unit : "")))];
  });
  const at = rows.columns.findIndex((column) => column.key === "hash");
  const command = make("code", {}, `inspect-kernel report CACHE ${cells[at]}`);
  return make(
    "article", { className: "kernel" },
    make("h1", { id: "kernel-title" }, `${cells[0]} `, make("span", { className: "form" }, cells[1])),
    make("section", { className: `card limit ${told.length ? findings[id][0].level : ""}` }, make("h2", {}, "What limits it"), told.length ? make("ul", { className: "findings" }, ...told) : "No finding."),
    make("section", { className: "card" }, make("h2", {}, "Facts"), make("dl", { className: "rows" }, ...facts)),
    make("p", { className: "soft" }, "Pictures and code: ", command),
  );
};

const showKernel = async (id) => {
  const host = document.getElementById("kernel");
  if (shown !== id) {
    shown = id;
    code = null;
    const lines = about.brief ? null : await unpack(`code-${id}`);
    const content = about.brief ? briefPage(id) : await unpack(`page-${id}`);
    if (shown !== id) return; // another kernel was opened meanwhile
    const parts = document.createElement("template");
    if (about.brief) parts.content.append(content);
    else parts.innerHTML = content;
    host.replaceChildren(parts.content);
    host.hidden = false;
    const title = host.querySelector("h1");
    document.title = title.textContent;
    if (!about.alone) {
      scrollTo({ top: 0, behavior: "instant" });
      title.tabIndex = -1;
      title.focus({ preventScroll: true });
    }
    if (lines) code = new CodeElement(host.querySelector("[data-code]"), lines);
  } else code?.restore();
};

const heading = document.title;
let listTop = 0; // how far the list was scrolled when a kernel was opened
const restore = async () => {
  paint();
  if (!document.getElementById("list").hidden) listTop = scrollY;
  const asked = view.get("k");
  const known = asked && (about.brief ? (await loadRecords()).lines.has(asked) : about.leaves.includes(asked));
  const id = about.alone ? about.leaves[0] : known ? asked : null;
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
      const back = make("a", { href: "#" }, `← all ${about.leaves.length || records.lines.size}`);
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

// Pictures grow and shrink with + and -, or with Ctrl and the wheel; they are dragged, or moved with the arrow keys.
const enlarge = (picture, factor) => {
  const drawn = picture.querySelector("svg");
  const now = Number(picture.dataset.scale || 1);
  const scale = factor ? Math.min(16, Math.max(1, now * factor)) : 1;
  const middle = (picture.scrollLeft + picture.clientWidth / 2) / picture.scrollWidth;
  picture.dataset.scale = scale;
  const base = drawn.dataset.base ?? (drawn.dataset.base = String(drawn.getBoundingClientRect().width));
  drawn.style.width = scale === 1 ? "" : `${base * scale}px`;
  drawn.style.maxWidth = scale === 1 ? "" : "none";
  picture.scrollLeft = middle * picture.scrollWidth - picture.clientWidth / 2;
};
const factors = { "+": 1.5, "=": 1.5, "-": 1 / 1.5, 0: 0 };
document.addEventListener("keydown", (event) => {
  const picture = event.target.closest?.(".picture");
  if (!picture || !(event.key in factors) || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  enlarge(picture, factors[event.key]);
});
document.addEventListener("wheel", (event) => {
  const picture = event.ctrlKey && event.target.closest?.(".picture");
  if (!picture) return;
  event.preventDefault();
  enlarge(picture, event.deltaY < 0 ? 1.2 : 1 / 1.2);
}, { passive: false });
let drag = null; // the picture, and where it was taken
document.addEventListener("pointerdown", (event) => {
  const picture = event.button === 0 && event.target.closest?.(".picture");
  if (picture && event.pointerType === "mouse") drag = { picture, x: event.clientX + picture.scrollLeft, y: event.clientY + picture.scrollTop };
});
document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  drag.picture.scrollLeft = drag.x - event.clientX;
  drag.picture.scrollTop = drag.y - event.clientY;
});
document.addEventListener("pointerup", () => (drag = null));
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-enlarge]");
  if (!button) return;
  const picture = [...button.closest(".drawing").querySelectorAll(".picture")].find((one) => !one.hidden);
  enlarge(picture, factors[button.dataset.enlarge]);
});

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
