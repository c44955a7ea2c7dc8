// One quantity of every variant: configurations as rows, targets and versions as columns.
class PivotElement {
  constructor(host, data) {
    Object.assign(this, { host, data });
    this.choice = make("select", { ariaLabel: "Figure" });
    for (const figure of data.figures) this.choice.append(make("option", { value: figure.key }, figure.heading));
    this.choice.addEventListener("change", () => {
      view.set({ figure: this.choice.value });
      this.restore();
    });
    this.told = make("span", { className: "soft" });
    this.table = make("table", { className: "data pivot" });
    const frame = make("div", { className: "frame", tabIndex: 0, role: "region", ariaLabel: "Configurations" }, this.table);
    host.append(make("div", { className: "bar" }, this.choice, this.told), frame);
    this.restore();
  }

  restore() {
    const figure = this.data.figures.find((one) => one.key === view.get("figure")) || this.data.figures[0];
    this.choice.value = figure.key;
    const shading = figure.worse ? ` – shading and ▲: ${figure.worse} is worse` : "";
    this.told.textContent = figure.is_number ? figure.unit + shading : "≠ differs from most variants";
    const at = this.data.figures.indexOf(figure);
    const shares = sharesOfBetter(this.data.cells.map((cell) => cell.values[at]), figure.worse);
    const counts = new Map();
    for (const cell of this.data.cells) counts.set(String(cell.values[at]), (counts.get(String(cell.values[at])) || 0) + 1);
    const [usual] = [...counts].reduce((most, one) => (one[1] > most[1] ? one : most));
    const head = make("tr", {}, make("th", { scope: "col" }, "configuration"), ...this.data.columns.map((name) => make("th", { scope: "col" }, name)));
    const rows = this.data.rows.map((name, row) =>
      make("tr", {}, make("th", { scope: "row" }, name || "–"), ...this.data.columns.map((_, column) => {
        const here = this.data.cells.filter((cell) => cell.row === row && cell.column === column);
        const numbers = here.map((cell) => cell.values[at]).filter(Number.isFinite);
        const heat = shares.size && numbers.length ? heatOf(Math.max(...numbers.map((one) => shares.get(one))), 0, 1) : "";
        const odd = !figure.is_number && here.some((cell) => String(cell.values[at]) !== usual);
        const said = here.flatMap((cell, n) => {
          const text = String(cell.values[at]) || "–";
          return [n ? ", " : "", cell.id ? make("a", { href: `#k=${encodeURIComponent(cell.id)}` }, text) : text];
        });
        return make("td", { className: `${figure.is_number ? "number " : ""}${heat}${odd ? "odd" : ""}` }, ...(odd ? ["≠ "] : []), ...said);
      })));
    this.table.replaceChildren(make("caption", { className: "unseen" }, figure.heading), make("thead", {}, head), make("tbody", {}, ...rows));
  }
}
