// The page of one run: what is selected, the keyboard, and the address of a row.

const HELP = [
  ["\u2191 \u2193", "previous, next row"], ["\u2190 \u2192", "close or open a call; to its caller, into it"], ["Home End", "first, last row"],
  ["/", "find a text in names, inputs, results and errors"], ["n N", "next, previous row found; without a text, what failed"],
  ["r", "raw data of the row"], ["Enter", "to the details, and back"], ["Esc", "leave the finder; back to the run"], ["?", "this list"],
];

const page = {
  start(doc) {
    this.tree = new Tree((row) => this.selected(row));
    this.detail = new Detail(document.getElementById("detail"));
    this.finder = document.getElementById("find");
    this.finder.addEventListener("input", () => this.find());
    document.getElementById("keys").addEventListener("click", () => this.help());
    const about = () => { this.select(null); document.body.classList.add("opened"); };
    document.getElementById("actions").append(el("button", { type: "button", class: "small", onclick: about }, "Summary"));
    addEventListener("keydown", (event) => this.pressed(event));
    addEventListener("hashchange", () => this.follow());
    if (doc) this.open(new Run(doc));
  },

  open(run) {
    this.run = run;
    this.title();
    this.tree.show(run);
    this.follow();
    this.tree.box.focus({ preventScroll: true });
  },

  title() {
    const { run } = this, { record } = run;
    document.title = `${line(record.entry, 40)} \u00b7 ${run.status} \u00b7 llm-do`;
    const sums = [...run.agents.values()];
    const tokens = sums.reduce((sum, each) => sum + each.input + each.output, 0), known = sums.filter((each) => each.cost !== null);
    const cost = known.length ? known.reduce((sum, each) => sum + each.cost, 0) : null;
    const took = run.end - run.start - run.pauses.reduce((sum, [from, to]) => sum + to - from, 0);
    const about = [clock(record.started), seconds(took), tokens ? count(tokens, "token") : "", dollars(cost)].filter(Boolean).join(" \u00b7 ");
    document.getElementById("title").replaceChildren(
      el("h1", {}, run.project ? el("span", { class: "dim" }, visible(run.project), " / ") : "", visible(record.entry), " ", chip(run.status)),
      el("p", { class: "dim" }, el("code", {}, shortId(record.run_id)), " \u00b7 ", about));
  },

  select(row) { this.tree.select(row); },

  /** On a small screen: from the details to the rows. */
  back() {
    document.body.classList.remove("opened");
    this.tree.box.focus({ preventScroll: true });
  },

  selected(row) {
    if (row) document.body.classList.add("opened");
    this.detail.show(this.run, row);
    const place = row ? `#${row.key}` : "#";
    if ((location.hash || "#") !== place) history.replaceState(null, "", place === "#" ? location.pathname + location.search : place);
  },

  /** Select the row that the address names. */
  follow() {
    const row = this.run && this.run.byKey.get(location.hash.slice(1));
    if (this.run && (row || null) === this.tree.selected && this.detail.run === this.run) return;
    if (this.run) this.tree.select(row || null);
  },

  find() {
    const words = this.finder.value, hits = this.tree.find(words);
    document.getElementById("found").textContent = words.trim() ? `${number(hits)} found` : "";
  },

  help() {
    this.dialog("Keyboard", el("dl", { class: "fields" }, HELP.flatMap(([keys, does]) => [el("dt", {}, keys.split(" ").map((key) => el("kbd", {}, key))), el("dd", {}, does)])));
  },

  dialog(title, content) {
    const dialog = document.getElementById("help");
    dialog.replaceChildren(el("h2", { id: "help-title" }, title), content, el("button", { type: "button", onclick: () => dialog.close() }, "Close"));
    if (!dialog.open) dialog.showModal();
  },

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open || !this.run) return;
    const { tree } = this, typing = event.target.closest && event.target.closest("input, textarea, select");
    if (typing) {
      if (typing !== this.finder) return;
      if (event.key === "Escape") { this.finder.value = ""; this.find(); tree.box.focus(); }
      else if (event.key === "Enter") { tree.next(event.shiftKey ? -1 : 1); tree.box.focus(); }
      else return;
      event.preventDefault();
      return;
    }
    const reading = this.detail.box.contains(document.activeElement);
    const button = event.target.closest && event.target.closest("button, a, summary");
    const row = tree.selected, size = Math.max(1, Math.floor(tree.scroll.clientHeight / ROW) - 2);
    const keys = {
      "/": () => this.finder.select(), "?": () => this.help(), n: () => tree.next(1), N: () => tree.next(-1),
      r: () => { this.detail.raw = !this.detail.raw; this.detail.show(this.run, row); },
      Escape: () => { if (reading) tree.box.focus(); else if (this.finder.value) { this.finder.value = ""; this.find(); } else this.select(null); },
    };
    if (!reading) Object.assign(keys, {
      ArrowDown: () => tree.move(1), ArrowUp: () => tree.move(-1), j: () => tree.move(1), k: () => tree.move(-1),
      PageDown: () => tree.move(size), PageUp: () => tree.move(-size), Home: () => tree.move(-tree.rows.length), End: () => tree.move(tree.rows.length),
      ArrowRight: () => { if (row && row.children.length) tree.collapsed.has(row) ? tree.toggle(row, true) : tree.select(row.children[0]); },
      ArrowLeft: () => { if (!row) return; if (row.children.length && !tree.collapsed.has(row)) tree.toggle(row, false); else if (row.parent) tree.select(row.parent); },
    });
    if (!button) keys.Enter = () => (reading ? tree.box.focus() : this.detail.box.focus());
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  },
};

const embedded = document.getElementById("document");
if (embedded) page.start(JSON.parse(embedded.textContent));
