// The tree of rows with the times beside it. Only rows in view are in the document, so its length costs nothing.

const ROW = 28; // pixels, as in the style sheet
const MOST_PRINTED = 3000;

class Tree {
  constructor(onSelect) {
    this.scroll = document.getElementById("scroll");
    this.box = document.getElementById("tree");
    this.axis = document.getElementById("axis");
    this.onSelect = onSelect;
    this.collapsed = new Set();
    this.drawn = new Map();
    this.rows = [];
    this.found = null;
    this.scroll.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.scroll);
    this.box.addEventListener("click", (event) => this.clicked(event));
    const print = matchMedia("print");
    print.addEventListener("change", () => this.print(print.matches));
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
  }

  show(run) {
    Object.assign(this, { run, selected: null, found: null });
    this.collapsed.clear();
    this.refresh();
  }

  /** Take in new rows, or what is collapsed and found now. */
  refresh() {
    if (!this.run) return;
    this.scale = new Scale(this.run);
    this.rows = [];
    const walk = (rows, level) => {
      const shown = this.kept ? rows.filter((row) => this.kept.has(row)) : rows;
      shown.forEach((row, index) => {
        Object.assign(row, { level, place: index + 1, siblings: shown.length, index: this.rows.length });
        this.rows.push(row);
        if (!this.collapsed.has(row) || this.kept) walk(row.children, level + 1);
      });
    };
    walk(this.run.roots, 1);
    this.box.style.height = `${this.rows.length * ROW}px`;
    const lane = el("div", { class: "lane" });
    lane.append(...this.scale.ticks().map(([at, text]) => el("span", { class: at > 96 ? "tick last" : "tick", style: { left: `${at}%` } }, text)));
    this.axis.replaceChildren(el("div", { class: "label" }), lane);
    this.drawn.clear();
    this.box.replaceChildren();
    this.draw();
  }

  draw() {
    const height = this.scroll.clientHeight || 600, top = this.scroll.scrollTop;
    let first = Math.max(0, Math.floor(top / ROW) - 8), last = Math.min(this.rows.length, Math.ceil((top + height) / ROW) + 8);
    if (this.printing) [first, last] = [0, Math.min(this.rows.length, MOST_PRINTED)];
    const wanted = new Set(this.rows.slice(first, last));
    if (this.selected && this.rows[this.selected.index] === this.selected) wanted.add(this.selected);
    for (const [row, made] of this.drawn) {
      if (wanted.has(row)) continue;
      made.remove();
      this.drawn.delete(row);
    }
    let following = this.box.firstChild; // in the order of the rows, as they are read out
    for (const row of [...wanted].sort((one, two) => one.index - two.index)) {
      let made = this.drawn.get(row);
      if (!made) this.drawn.set(row, (made = this.element(row)));
      if (made === following) following = following.nextSibling;
      else this.box.insertBefore(made, following);
    }
  }

  element(row) {
    const { run } = this, state = run.state(row), opened = !this.collapsed.has(row);
    const took = run.took(row), facts = [];
    if (!["completed", "success", "", "running", "warning"].includes(state)) facts.push(el("b", { class: "state" }, line(state.replace("_", " "), 20)));
    if (row.cost) facts.push(dollars(row.cost));
    if (row.kind !== "note") facts.push(state === "running" ? "running" : seconds(took));
    const said = [KINDS[row.kind], line(row.name), state, row.kind === "note" ? row.text : seconds(took)].filter(Boolean).join(", ");
    return el("div", {
      class: `row ${row.kind} ${BAD.has(state) ? "bad" : state}${row === this.selected ? " selected" : ""}`,
      id: `row-${row.key}`, role: "treeitem", "data-key": row.key, "aria-level": row.level, "aria-posinset": row.place,
      "aria-setsize": row.siblings, "aria-selected": row === this.selected ? "true" : "false",
      "aria-expanded": row.children.length ? String(opened) : null, "aria-label": said, style: { top: `${row.index * ROW}px` },
    },
      el("div", { class: "label" },
        el("span", { class: "indent", style: { width: `${Math.min(row.level - 1, 14) * 16}px` } }),
        el("span", { class: row.children.length ? "caret" : "caret none", "data-caret": true }),
        el("span", { class: "mark" }),
        el("span", { class: "name" }, line(row.name, 60)),
        el("span", { class: "summary" }, this.marked(run.summary(row))),
        el("span", { class: "facts" }, facts.flatMap((fact, at) => (at ? [" ", fact] : [fact])))),
      el("div", { class: "lane" }, this.bars(row)));
  }

  bars(row) {
    const { scale, run } = this, from = scale.at(row.began || row.start), to = scale.at(run.endOf(row));
    const bar = (kind, one, two, title) => el("i", { class: kind, title, style: { left: `${one}%`, width: `${Math.max(two - one, 0)}%` } });
    const found = run.pauses.map(([one, two]) => bar("pause", scale.at(one), scale.at(two), `stopped for ${seconds(two - one)}`));
    if (row.kind === "note") return [...found, bar("bar point", from, from)];
    const exchange = run.exchange(row), first = exchange && exchange.first_token;
    found.push(bar("bar", from, to, seconds(run.took(row))));
    if (first) found.push(bar("first", from, scale.at(first), `first token after ${seconds(first - exchange.begun)}`));
    for (const wait of row.waits) {
      const until = wait.to === null ? run.endOf(row) : wait.to;
      found.push(bar("wait", scale.at(wait.from), scale.at(until), `waited for a person for ${seconds(until - wait.from)}`));
    }
    if (row.retry) found.push(bar("delay", to, scale.at(row.end + row.retry.delay), `asked again after ${seconds(row.retry.delay)}`));
    return found;
  }

  /** A line in which what the finder looks for is marked. */
  marked(text) {
    const at = this.words ? text.toLowerCase().indexOf(this.words) : -1;
    if (at < 0) return [text];
    return [text.slice(0, at), el("mark", {}, text.slice(at, at + this.words.length)), text.slice(at + this.words.length)];
  }

  clicked(event) {
    const element = event.target.closest("[data-key]");
    const row = element && this.run.byKey.get(element.getAttribute("data-key"));
    if (!row) return;
    if (event.target.hasAttribute("data-caret") && row.children.length) this.toggle(row);
    else this.select(row);
    this.box.focus({ preventScroll: true });
  }

  toggle(row, open = this.collapsed.has(row)) {
    if (open) this.collapsed.delete(row);
    else this.collapsed.add(row);
    this.refresh();
  }

  select(row, { quiet = false } = {}) {
    for (let above = row && row.parent; above; above = above.parent) this.collapsed.delete(above);
    const before = this.selected;
    this.selected = row;
    if (row && this.rows[row.index] !== row) this.refresh();
    for (const one of [before, row]) {
      const made = one && this.drawn.get(one);
      if (!made) continue;
      made.remove();
      this.drawn.delete(one);
    }
    if (row && this.rows[row.index] === row) this.reveal(row);
    this.draw();
    if (row) this.box.setAttribute("aria-activedescendant", `row-${row.key}`);
    else this.box.removeAttribute("aria-activedescendant");
    if (!quiet) this.onSelect(row);
  }

  reveal(row) {
    const top = row.index * ROW, view = this.scroll.clientHeight - this.axis.offsetHeight;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top + ROW > this.scroll.scrollTop + view) this.scroll.scrollTop = top + ROW - view;
  }

  move(by) {
    if (!this.rows.length) return;
    const now = this.selected && this.rows[this.selected.index] === this.selected ? this.selected.index : by > 0 ? -1 : 0;
    this.select(this.rows[Math.min(Math.max(now + by, 0), this.rows.length - 1)]);
  }

  /** Show the rows that have a text, with those above them; returns how many have it. */
  find(words) {
    this.words = words.trim().toLowerCase();
    this.kept = null;
    let hits = [];
    if (this.words) {
      this.kept = new Set();
      for (const row of this.run.byKey.values()) {
        if (!this.run.text(row).includes(this.words)) continue;
        hits.push(row);
        for (let one = row; one && !this.kept.has(one); one = one.parent) this.kept.add(one);
      }
    }
    this.hits = hits;
    this.scroll.scrollTop = 0;
    this.refresh();
    return hits.length;
  }

  /** Go to the next row that was found, or that has failed if nothing is looked for. */
  next(by) {
    const wanted = this.words ? new Set(this.hits) : null;
    const matches = this.rows.filter((row) => (wanted ? wanted.has(row) : BAD.has(this.run.state(row))));
    if (!matches.length) return;
    const now = this.selected ? this.selected.index : -1;
    const row = by > 0 ? matches.find((each) => each.index > now) || matches[0] : matches.findLast((each) => each.index < now) || matches[matches.length - 1];
    this.select(row);
  }

  print(printing) {
    if (this.printing === printing || !this.run) return;
    this.printing = printing;
    this.draw();
  }
}

const KINDS = { call: "call", request: "model request", tool: "tool", note: "note" };
const BAD = new Set(["failed", "denied", "refused", "timed_out", "cancelled", "interrupted", "limited", "provider_failed", "invalid", "unfinished"]);
