// A table to sort, filter and group. Rows are created as they are scrolled to.
const AT_ONCE = 200;

class DataTable {
  constructor(host, data, open) {
    Object.assign(this, { host, data, open });
    this.keys = data.columns.map((column) => column.key);
    this.words = data.lines.map((line) => line.cells.flat().join(" ").toLowerCase());
    this.shares = data.columns.map((column, at) => sharesOfBetter(data.lines.map((line) => line.cells[at]), column.worse));
    this.closed = new Set();
    this.build();
    this.restore();
  }

  build() {
    this.filter = make("input", {
      type: "search", className: "filter", placeholder: "filter: words, verdict:serial, regs>128, -word",
      ariaLabel: "Filter", spellcheck: false,
    });
    this.filter.addEventListener("input", () => this.change({ filter: this.filter.value }));
    this.group = make("select", { ariaLabel: "Group by" }, make("option", { value: "" }, "not grouped"));
    for (const column of this.data.columns.filter((one) => one.is_group))
      this.group.append(make("option", { value: column.key }, `by ${column.heading}`));
    this.group.addEventListener("change", () => this.change({ group: this.group.value }));
    this.count = make("output", { className: "soft" });
    this.count.setAttribute("role", "status");
    this.heads = this.data.columns.map((column, at) => {
      const worse = column.worse ? `; ${column.worse} is worse` : "";
      const button = make("button", { type: "button", title: `${column.unit}${worse}` }, column.heading);
      button.addEventListener("click", () => this.sortBy(column.key, column.is_number));
      return make("th", { scope: "col", className: column.is_number ? "number" : "" }, button);
    });
    this.table = make(
      "table", { className: "data" }, make("caption", { className: "unseen" }, this.data.caption),
      make("thead", {}, make("tr", {}, ...this.heads)),
    );
    this.end = make("p", { className: "soft" });
    const frame = make("div", { className: "frame", tabIndex: 0, role: "region", ariaLabel: this.data.caption }, this.table);
    const save = make("button", { type: "button", className: "quiet", title: "The rows shown, in their order" }, "Save as CSV");
    save.addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" }));
      make("a", { href: address, download: "kernels.csv" }).click();
      URL.revokeObjectURL(address);
    });
    const [most, least] = ["more", "less"].map((word) => this.data.columns.filter((x) => x.worse === word).map((x) => x.heading));
    const key = [["high", most], ["low", least]].filter(([, names]) => names.length).map(([word, names]) => `${word} ${names.join(", ")}`);
    const swatches = [2, 4, 6, 8].map((n) => make("span", { className: `swatch h${n}` }));
    const legend = make("p", { className: "soft legend" }, "Shading ", ...swatches, ` and ▲: worse than most rows (${key.join("; ")}). No shading: neither is better.`);
    this.host.append(make("div", { className: "bar" }, this.filter, this.group, this.count, save), ...(key.length ? [legend] : []), frame, this.end);
    new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.more()).observe(this.end);
    addEventListener("beforeprint", () => this.more(Infinity));
  }

  // The rows shown, in their order.
  csv() {
    const quote = (cell) => `"${[cell ?? ""].flat().join(" ").replaceAll('"', '""')}"`;
    const rows = [this.data.columns.map((column) => column.heading), ...this.chosen.map((n) => this.data.lines[n].cells)];
    return rows.map((cells) => cells.map(quote).join(",")).join("\n");
  }

  change(changes) {
    view.set(changes);
    this.restore();
  }

  sortBy(key, isNumber) {
    const first = isNumber ? `-${key}` : key;
    const other = isNumber ? key : `-${key}`;
    const now = view.get("sort");
    this.change({ sort: now === first ? other : now === other ? "" : first });
  }

  restore() {
    const filter = view.get("filter") || "";
    if (this.filter.value !== filter) this.filter.value = filter;
    this.group.value = view.get("group") || "";
    const tests = filter.toLowerCase().split(/\s+/).filter(Boolean).map((word) => this.test(word));
    let chosen = this.data.lines.map((_, at) => at).filter((at) => tests.every((test) => test(at)));
    chosen = this.sorted(chosen, view.get("sort") || "");
    this.count.textContent =
      chosen.length === this.data.lines.length ? `${chosen.length}` : `${chosen.length} of ${this.data.lines.length}`;
    this.chosen = chosen;
    this.todo = this.grouped(chosen, this.group.value);
    for (const body of [...this.table.tBodies]) body.remove();
    this.body = null;
    this.more();
    for (const chip of document.querySelectorAll("[data-filter]"))
      chip.ariaPressed = String(filter.split(/\s+/).includes(chip.dataset.filter));
  }

  // The test of a row for one word of a filter.
  test(word) {
    const not = word.length > 1 && word.startsWith("-");
    const found = /^(\w+)([:<>=])(.+)$/.exec(not ? word.slice(1) : word);
    const at = found ? this.keys.findIndex((key, n) => key === found[1] || this.data.columns[n].heading.toLowerCase() === found[1]) : -1;
    let holds = (n) => this.words[n].includes(not ? word.slice(1) : word);
    if (at >= 0) {
      const [, , sign, text] = found;
      const cell = (n) => this.data.lines[n].cells[at];
      const number = Number(text);
      if (sign === ":") holds = (n) => [cell(n)].flat().join(" ").toLowerCase().includes(text);
      if (sign === "=") holds = (n) => [cell(n)].flat().some((one) => String(one).toLowerCase() === text);
      if (sign === "<") holds = (n) => Number.isFinite(cell(n)) && cell(n) < number;
      if (sign === ">") holds = (n) => Number.isFinite(cell(n)) && cell(n) > number;
    }
    return not ? (n) => !holds(n) : holds;
  }

  sorted(chosen, sort) {
    const down = sort.startsWith("-");
    const at = this.keys.indexOf(down ? sort.slice(1) : sort);
    this.heads.forEach((head, n) => {
      if (n === at) head.ariaSort = down ? "descending" : "ascending";
      else head.removeAttribute("aria-sort");
    });
    if (at < 0) return chosen;
    const isNumber = this.data.columns[at].is_number;
    const cell = (n) => this.data.lines[n].cells[at];
    const known = chosen.filter((n) => (isNumber ? Number.isFinite(cell(n)) : String(cell(n)) !== ""));
    const told = new Set(known);
    const rest = chosen.filter((n) => !told.has(n));
    known.sort((a, b) => (isNumber ? cell(a) - cell(b) : String(cell(a)).localeCompare(String(cell(b)), "en", { numeric: true })));
    if (down) known.reverse();
    return [...known, ...rest];
  }

  // Rows, and group headers between them.
  grouped(chosen, key) {
    const at = this.keys.indexOf(key);
    if (at < 0) return chosen.map((n) => ({ row: n }));
    const groups = new Map();
    for (const n of chosen) {
      const name = String(this.data.lines[n].cells[at]) || "none";
      gather(groups, name, n);
    }
    return [...groups].flatMap(([name, rows]) => [
      { name, rows },
      ...(this.closed.has(name) ? [] : rows.map((n) => ({ row: n }))),
    ]);
  }

  more(count = AT_ONCE) {
    this.body ??= this.table.appendChild(make("tbody"));
    const made = this.todo.splice(0, count).map((one) => (one.rows ? this.head(one) : this.row(one.row)));
    this.body.append(...made);
    const left = this.todo.length;
    this.end.textContent = left ? `${left} more below` : "";
    if (left) requestAnimationFrame(() => this.end.getBoundingClientRect().top < innerHeight && this.more());
  }

  head({ name, rows }) {
    const open = !this.closed.has(name);
    const button = make("button", { type: "button", className: "group", ariaExpanded: String(open) }, `${open ? "▾" : "▸"} ${name}`, make("b", {}, String(rows.length)));
    button.addEventListener("click", () => {
      open ? this.closed.add(name) : this.closed.delete(name);
      this.restore();
    });
    const cells = this.data.columns.map((column, at) => {
      if (at === 0) return make("th", { scope: "rowgroup" }, button);
      const told = column.is_number ? rows.map((n) => this.data.lines[n].cells[at]).filter(Number.isFinite) : [];
      const [least, most] = [Math.min(...told), Math.max(...told)];
      return make("td", { className: "number soft" }, told.length ? (least === most ? `${least}` : `${least}–${most}`) : "");
    });
    return make("tr", { className: "group" }, ...cells);
  }

  row(n) {
    const line = this.data.lines[n];
    const cells = line.cells.map((cell, at) => {
      const column = this.data.columns[at];
      const text = Array.isArray(cell) ? cell.join(" ") : String(cell ?? "");
      if (at === 0) {
        const words = text.split(/(?<=_)/).flatMap((word) => [word, make("wbr")]);
        const first = line.id ? [make("a", { href: `#k=${encodeURIComponent(line.id)}` }, ...words)] : words;
        return make("th", { scope: "row" }, ...first);
      }
      if (!column.is_number) return make("td", { className: column.is_long ? "long" : "" }, text);
      const heat = this.shares[at].has(cell) ? heatOf(this.shares[at].get(cell), 0, 1) : "";
      return make("td", { className: `number ${heat}` }, text);
    });
    cells.forEach((one, at) => (one.dataset.label = this.data.columns[at].heading));
    const made = make("tr", {}, ...cells);
    if (line.id) {
      made.className = "opens";
      made.addEventListener("click", (event) => event.target.tagName !== "A" && this.open(line.id));
    }
    return made;
  }
}
