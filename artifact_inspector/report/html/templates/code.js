// Files side by side. Only visible lines are in the document.
const LINE = 18;
const SPARE = 12;
const RUN = /([a-z]*)(\d+)/g;

class PaneElement {
  constructor(code, data) {
    Object.assign(this, { code, data });
    this.lines = data.text.split("\n");
    this.count = this.lines.length;
    this.lit = new Set();
    this.current = 0;
    this.digits = String(data.numbers.length ? data.numbers[data.numbers.length - 1] : this.count).length;
    this.letters = Object.values(data.events).reduce((most, text) => Math.max(most, text.length), 0);
    this.byLink = new Map();
    data.links.forEach((link, at) => {
      if (link) gather(this.byLink, link, at);
    });
    this.parts = [...data.regions].sort((a, b) => b.last - b.first - (a.last - a.first));
    this.build();
  }

  number(at) {
    return this.data.numbers.length ? this.data.numbers[at] : at + 1;
  }

  at(number) {
    return this.data.numbers.length ? this.data.numbers.indexOf(number) : number - 1;
  }

  build() {
    this.rows = make("div", { className: "rows" });
    this.whole = make("div", { className: "whole" }, this.rows);
    this.whole.style.height = `${this.count * LINE}px`;
    const longest = this.lines.reduce((most, text) => Math.max(most, text.length), 0);
    this.whole.style.minWidth = `calc(${longest + this.digits + this.letters + 8 + 6 * this.data.margins.length}ch)`;
    this.scroll = make("div", { className: "lines", tabIndex: 0, role: "listbox", ariaLabel: `Lines of ${this.data.name}` }, this.whole);
    this.map = make("canvas", { className: "map", width: 12, height: 400, ariaHidden: "true" });
    this.told = make("span", { className: "soft" });
    const jump = make("select", { ariaLabel: `Go to a region of ${this.data.name}` }, make("option", { value: "" }, "go to …"));
    for (const part of this.data.regions)
      jump.append(make("option", { value: String(part.first) }, `${part.name}  ${part.verdict}  ${part.first}–${part.last}`));
    jump.addEventListener("change", () => jump.value && this.goTo(Number(jump.value) - 1, true));
    const titles = this.data.margins.map((margin) => margin.title);
    this.element = make(
      "section", { className: "pane", ariaLabel: this.data.name },
      make("header", {}, make("h3", {}, this.data.name), this.told, ...(this.data.regions.length ? [jump] : []),
        make("p", { className: "soft path", title: this.data.title }, this.data.title),
        ...(titles.length ? [make("p", { className: "soft path" }, `margin: ${titles.join(", ")}`)] : [])),
      make("div", { className: "body" }, this.scroll, this.map),
    );
    this.scroll.addEventListener("scroll", () => this.later(), { passive: true });
    this.scroll.addEventListener("pointermove", (event) => this.point(event));
    this.scroll.addEventListener("pointerleave", () => this.code.light(null));
    this.scroll.addEventListener("click", (event) => {
      const line = this.lineAt(event);
      if (line >= 0) this.goTo(line, false, true);
    });
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    this.scroll.addEventListener("focus", () => this.code.light(this, this.current));
    this.map.addEventListener("click", (event) => {
      this.scroll.scrollTop = (event.offsetY / this.map.clientHeight) * this.count * LINE - this.scroll.clientHeight / 2;
    });
    new ResizeObserver(() => {
      this.map.height = Math.max(40, this.scroll.clientHeight);
      this.draw(true);
    }).observe(this.scroll);
  }

  lineAt(event) {
    const row = event.target.closest?.(".line");
    return row ? Number(row.dataset.at) : -1;
  }

  point(event) {
    const line = this.lineAt(event);
    if (line >= 0 && (this.code.pane !== this || this.current !== line)) this.code.light(this, line);
  }

  later() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      this.draw();
    });
  }

  // Render the visible lines and a few more.
  draw(anew = false) {
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / LINE) - SPARE);
    const last = Math.min(this.count, first + Math.ceil(this.scroll.clientHeight / LINE) + 2 * SPARE);
    if (!anew && first === this.first && last === this.last) return;
    Object.assign(this, { first, last });
    this.rows.style.transform = `translateY(${first * LINE}px)`;
    const made = [];
    for (let at = first; at < last; at++) made.push(this.row(at));
    this.rows.replaceChildren(...made);
    if (anew) this.drawMap();
  }

  row(at) {
    const number = this.number(at);
    const isLit = this.lit.has(at);
    const isHere = this.code.pane === this && this.current === at;
    const row = make("div", { className: `line${isLit ? " lit" : ""}${isHere ? " here" : ""}`, role: "option", id: `${this.data.name}-${at}` });
    row.dataset.at = at;
    row.ariaSelected = String(isLit);
    row.ariaSetSize = this.count;
    row.ariaPosInSet = at + 1;
    row.append(make("span", { className: "no" }, String(number).padStart(this.digits)));
    row.append(make("span", { className: "mark" }, isHere ? "▶" : isLit ? "▸" : " "));
    for (const margin of this.data.margins) {
      const figure = margin.lines[number];
      const heat = figure === undefined ? "" : heatOf(figure, 0, margin.maximum);
      row.append(make("span", { className: `figure ${heat}`, title: margin.title }, figure === undefined ? "" : shorten(figure)));
    }
    if (this.letters) row.append(make("span", { className: "events" }, (this.data.events[number] || "").padEnd(this.letters)));
    const part = this.parts.findLast((one) => one.first <= number && number <= one.last);
    row.append(make("span", { className: part ? "part in" : "part" }));
    row.append(this.text(at));
    return row;
  }

  text(at) {
    const code = make("code");
    const line = this.lines[at];
    const pattern = this.data.patterns[this.data.colours[at]];
    if (!pattern) {
      code.textContent = line;
      return code;
    }
    let from = 0;
    for (const [, name, length] of pattern.matchAll(RUN)) {
      const text = line.slice(from, (from += Number(length)));
      code.append(name ? make("span", { className: name }, text) : text);
    }
    code.append(line.slice(from));
    return code;
  }

  show(lit) {
    this.lit = lit;
    this.draw(true);
    this.told.textContent = lit.size ? `${lit.size} of ${this.count} lines linked` : `${this.count} lines`;
  }

  drawMap() {
    const paint = this.map.getContext("2d");
    const { width, height } = this.map;
    const style = getComputedStyle(this.element);
    paint.clearRect(0, 0, width, height);
    const at = (line) => (line / this.count) * height;
    const tall = Math.max(2, height / this.count);
    paint.fillStyle = style.getPropertyValue("--map-heat");
    for (const margin of this.data.margins)
      for (const [number, figure] of Object.entries(margin.lines)) {
        paint.globalAlpha = margin.maximum ? 0.15 + (0.6 * figure) / margin.maximum : 0;
        paint.fillRect(width / 2, at(this.at(Number(number))), width / 2, tall);
      }
    paint.globalAlpha = 1;
    paint.fillStyle = style.getPropertyValue("--map-lit");
    for (const line of this.lit) paint.fillRect(0, at(line), width, tall);
  }

  // Scroll to the main loop when the pane is first shown.
  begin() {
    if (this.begun || !this.scroll.clientHeight) return;
    this.begun = true;
    const at = this.at(this.data.begin);
    if (at > 0) this.scroll.scrollTop = at * LINE;
    this.current = Math.max(0, at);
  }

  // Scroll a line into view.
  reveal(line) {
    const top = line * LINE;
    const { scrollTop, clientHeight } = this.scroll;
    if (top < scrollTop || top + LINE > scrollTop + clientHeight) this.scroll.scrollTop = top - clientHeight / 3;
  }

  goTo(line, focus, pin = true) {
    this.current = Math.min(this.count - 1, Math.max(0, line));
    this.reveal(this.current);
    if (focus) this.scroll.focus({ preventScroll: true });
    this.code.light(this, this.current, pin);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / LINE) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) this.goTo(this.current + steps[event.key], false, false);
    else if (event.key === "Enter") this.code.light(this, this.current, true);
    else if (event.key === "Escape") this.code.letGo();
    else if (event.key === "n" || event.key === "p") {
      const lit = [...this.lit].sort((a, b) => a - b);
      const next = event.key === "n" ? lit.find((one) => one > this.current) ?? lit[0] : lit.findLast((one) => one < this.current) ?? lit[lit.length - 1];
      if (next === undefined) return;
      this.current = next;
      this.reveal(next);
      this.show(this.lit);
    } else return;
    event.preventDefault();
    this.scroll.setAttribute("aria-activedescendant", `${this.data.name}-${this.current}`);
  }
}

const shorten = (figure) =>
  figure >= 1e9 ? `${+(figure / 1e9).toPrecision(3)}G` : figure >= 1e6 ? `${+(figure / 1e6).toPrecision(3)}M` : figure >= 1e4 ? `${+(figure / 1e3).toPrecision(3)}k` : `${+figure.toPrecision(4)}`;

class CodeElement {
  constructor(host, data) {
    Object.assign(this, { host, data });
    this.panes = data.panes.map((pane) => new PaneElement(this, pane));
    this.byPlace = new Map();
    data.sets.forEach((places, link) => {
      for (const place of places) gather(this.byPlace, place, link);
    });
    this.build();
    this.restore();
  }

  build() {
    this.buttons = this.panes.map((pane) => {
      const button = make("button", { type: "button", className: "chip" }, pane.data.name);
      button.addEventListener("click", () => this.toggle(pane));
      return button;
    });
    this.find = make("input", { type: "search", className: "filter", placeholder: "find in all files, Enter for next", ariaLabel: "Find in all files", spellcheck: false });
    this.find.addEventListener("keydown", (event) => event.key === "Enter" && this.next(event.shiftKey ? -1 : 1));
    this.found = make("output", { className: "soft" });
    this.told = make("p", { className: "told" });
    this.told.setAttribute("aria-live", "polite");
    this.grid = make("div", { className: "panes" });
    this.host.append(
      make("div", { className: "bar" }, make("span", { role: "group", ariaLabel: "Files" }, ...this.buttons), this.find, this.found),
      this.grid, this.told,
    );
  }

  restore() {
    const names = (view.get("files") || "").split("|").filter(Boolean);
    const wanted = this.panes.filter((pane) => names.includes(pane.data.name));
    this.arrange(wanted.length ? wanted : this.usual());
    const [, name, number] = /^(.*):(\d+)$/.exec(view.get("line") || "") || [];
    if (name) this.goTo(name, Number(number));
    else this.light(null);
  }

  // The most important files that fit.
  usual() {
    const room = Math.max(1, Math.min(4, Math.floor(this.host.clientWidth / 380)));
    const names = this.data.default_panes.slice(0, room);
    return this.panes.filter((pane) => names.includes(pane.data.name));
  }

  arrange(shown) {
    this.shown = this.panes.filter((pane) => shown.includes(pane));
    this.grid.replaceChildren(...this.shown.map((pane) => pane.element));
    this.grid.style.gridTemplateColumns = `repeat(${Math.max(1, this.shown.length)}, minmax(0, 1fr))`;
    this.panes.forEach((pane, at) => (this.buttons[at].ariaPressed = String(this.shown.includes(pane))));
    for (const pane of this.shown) {
      pane.draw(true);
      pane.begin();
    }
  }

  toggle(pane) {
    const shown = this.shown.includes(pane) ? this.shown.filter((one) => one !== pane) : [...this.shown, pane];
    if (!shown.length) return;
    this.arrange(shown);
    view.set({ files: this.shown.map((one) => one.data.name).join("|") });
  }

  // Lines of a pane with the same source lines as a given line.
  related(pane, source, line) {
    const link = source.data.links[line] || 0;
    const places = this.data.sets[link] || [];
    if (!places.length) return new Set(pane === source ? [line] : []);
    const links = source.data.is_source || pane.data.is_source
      ? new Set(places.flatMap((place) => this.byPlace.get(place) || []))
      : new Set([link, ...(this.byPlace.get(places[0]) || []).filter((one) => this.data.sets[one][0] === places[0])]);
    const found = [...links].flatMap((one) => pane.byLink.get(one) || []).sort((a, b) => a - b);
    return new Set(pane === source ? [...found, line] : found);
  }

  light(pane, line = 0, pin = false) {
    if (pane === null) {
      if (this.pinned) [pane, line] = this.pinned;
      else {
        this.pane = null;
        for (const one of this.panes) one.show(new Set());
        this.told.textContent = "Point at a line to see its lines in the other files; click to pin it.";
        return;
      }
    }
    if (pin) {
      this.pinned = [pane, line];
      view.set({ line: `${pane.data.name}:${pane.number(line)}` });
    }
    this.pane = pane;
    pane.current = line;
    for (const one of this.panes) {
      const lit = this.related(one, pane, line);
      one.show(lit);
      const first = lit.values().next().value;
      if (pin && one !== pane && first !== undefined) one.reveal(first);
    }
    this.tell(pane, line);
  }

  tell(pane, line) {
    const number = pane.number(line);
    const places = (this.data.sets[pane.data.links[line] || 0] || []).map((place) => this.data.locations[place]);
    const said = [`${pane.data.name} ${number}`];
    if (places.length && !pane.data.is_source) said.push(`from ${places.slice(0, 4).join(", ")}${places.length > 4 ? " …" : ""}`);
    if (!places.length) said.push("no source location");
    if (pane.data.events[number]) said.push(pane.data.events[number]);
    if (pane.data.notes[number]) said.push(pane.data.notes[number]);
    for (const margin of pane.data.margins)
      if (margin.lines[number] !== undefined) said.push(`${margin.title} ${margin.lines[number].toLocaleString("en")}`);
    for (const one of this.panes)
      if (one !== pane && one.lit.size) said.push(`${one.lit.size} in ${one.data.name}`);
    this.told.textContent = said.join(" · ");
  }

  letGo() {
    this.pinned = null;
    view.set({ line: "" });
    this.light(null);
  }

  goTo(name, number, focus = false) {
    const pane = this.panes.find((one) => one.data.name === name);
    if (!pane) return false;
    if (!this.shown.includes(pane)) this.toggle(pane);
    const line = pane.at(number);
    if (line < 0 || line >= pane.count) return false;
    pane.goTo(line, focus);
    return true;
  }

  next(step) {
    const text = this.find.value.toLowerCase();
    if (!text) return;
    const all = this.shown.flatMap((pane) => pane.lines.map((line, at) => [pane, at, line]).filter(([, , line]) => line.toLowerCase().includes(text)));
    this.found.textContent = all.length ? `${all.length} found` : "not found";
    if (!all.length) return;
    const here = all.findIndex(([pane, at]) => pane === this.pane && at === this.pane.current);
    const [pane, at] = all[here < 0 ? 0 : (here + step + all.length) % all.length];
    pane.goTo(at, false);
  }
}
