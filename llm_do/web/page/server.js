// The page of a server: it logs in with the key of its address, lists runs, and shows them while they last.

async function ask(method, path, body) {
  const request = { method, headers: body === undefined ? {} : { "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) };
  let answer;
  try { answer = await fetch(path, request); } catch { throw new Error("The server doesn't answer; it may have been stopped."); }
  const text = await answer.text();
  if (answer.ok) return text ? JSON.parse(text) : null;
  let problem = {};
  try { problem = JSON.parse(text).error; } catch { /* not from us */ }
  throw Object.assign(new Error([problem.message || `the server answered ${answer.status}`, problem.hint].filter(Boolean).join(". ")), { status: answer.status, answered: problem.answered });
}

const UNENDED = new Set(["running", "stopped", "suspended"]);
const runPath = (id, base = "") => `${base}/runs/${encodeURIComponent(id)}`;

/** These parameters of the page's address; others may have been added to it, and the interface refuses what it doesn't have. */
const addressed = (...names) => new URLSearchParams([...new URLSearchParams(location.search)].filter(([name]) => names.includes(name)));

const server = {
  async start() {
    page.start(null);
    document.getElementById("title").before(el("a", { href: "/", class: "home", title: "All runs" }, "llm-do"));
    this.box = el("section", { id: "home" });
    document.getElementById("main").before(el("div", { id: "questions" }), this.box);
    const key = new URLSearchParams(location.hash.slice(1)).get("key");
    try {
      if (key) {
        await ask("POST", "/api/session", { key });
        history.replaceState(null, "", location.pathname + location.search);
      }
      const [, name, id] = location.pathname.split("/");
      if (name === "runs") await this.run(id);
      else if (name === "compare") await this.compare();
      else if (name === "threads") await this.threads();
      else await this.home();
    } catch (error) {
      this.list(el("div", { class: "banner interrupted" }, el("h2", {}, error.status === 401 ? "This page has no key" : "That didn't work"), el("p", {}, visible(error.message))));
    }
  },

  list(...content) {
    document.body.classList.add("listing");
    this.box.replaceChildren(...content.flat().filter(Boolean));
  },

  async home() {
    const { projects } = await ask("GET", "/api/projects");
    document.title = "Runs \u00b7 llm-do";
    document.getElementById("title").replaceChildren(el("h1", {}, projects.map((each) => each.name).join(", ")), el("p", { class: "dim" }, projects.length === 1 ? visible(projects[0].description || "") : count(projects.length, "project")));
    const chosen = new Set(), table = el("div", {}), waiting = el("div", {});
    const status = el("select", { "aria-label": "Status" }, ["", "running", "completed", "failed", "denied", "interrupted", "suspended", "stopped", "limited", "provider_failed"].map((each) => el("option", { value: each }, each.replace("_", " ") || "all runs")));
    this.list(places("Runs"), startForm(projects), waiting, el("div", { class: "options" }, status, el("a", { id: "compare", hidden: true }, "Compare the two")), table);
    const refresh = async () => {
      const { runs } = await ask("GET", `/api/runs?limit=100${status.value ? `&status=${status.value}` : ""}`);
      const text = JSON.stringify(runs);
      if (text !== this.shown) table.replaceChildren(runTable(runs, chosen, projects.length > 1));
      this.shown = text;
      const { questions } = await ask("GET", "/api/questions");
      showQuestions(waiting, questions, (each) => questionCard(each, (answer) => this.answer(each, answer, refresh), el("p", {}, el("a", { href: runPath(each.run_id) }, line(each.entry, 60)), " ", el("code", { class: "dim" }, shortId(each.run_id)))));
    };
    status.addEventListener("change", refresh);
    await refresh();
    setInterval(() => { if (!document.hidden) refresh().catch(() => {}); }, 2000);
  },

  async compare() {
    const data = await ask("GET", `/api/compare?${addressed("first", "second")}`);
    document.getElementById("title").replaceChildren(el("h1", {}, "Two runs"));
    this.list(comparison(data));
  },

  /** The list of conversations, or the one that the address names. */
  async threads() {
    const id = new URLSearchParams(location.search).get("thread");
    if (id !== null) return new Conversation(this, `/api/threads/${encodeURIComponent(id)}?${addressed("project", "user")}`).show();
    const [{ threads }, { projects }] = await Promise.all([ask("GET", "/api/threads?limit=200"), ask("GET", "/api/projects")]);
    document.title = "Conversations \u00b7 llm-do";
    document.getElementById("title").replaceChildren(el("h1", {}, projects.map((each) => each.name).join(", ")));
    this.list(places("Conversations"), threadTable(threads, projects.length > 1));
  },

  async run(id) {
    const doc = await ask("GET", `/api/runs/${id}`);
    Object.assign(this, { id: encodeURIComponent(doc.run.run_id), here: doc.here, own: doc.mine });
    const run = new Run(doc);
    page.open(run);
    this.buttons();
    this.ask(doc);
    if (run.finished) return;
    this.follow();
    setInterval(() => { if (run.running && !document.hidden) this.draw(); }, 1000);
    setInterval(() => { if (!run.finished && !document.hidden) this.later("questions", 0); }, 2000); // another process may answer, or stop
  },

  /** Hear what happens from the last known event on; again after a while if the server refused. A connection that breaks is taken up again by the browser. */
  follow() {
    const { events } = page.run, source = new EventSource(`/api/runs/${this.id}/events?after=${events.length ? events[events.length - 1].seq : -1}`);
    source.addEventListener("message", (message) => this.heard(JSON.parse(message.data)));
    source.addEventListener("end", () => { source.close(); for (const what of ["requests", "questions"]) this.later(what, 0); });
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED && !page.run.finished) setTimeout(() => this.follow(), 2000); });
  },

  heard(event) {
    const { run } = page;
    run.add(event);
    if (event.type === "run_resumed") run.record.status = "running";
    this.draw();
    if (event.type === "usage" || ENDED.has(event.type)) this.later("requests", 300);
    if (["tool_call", "approval_requested", "approval_resolved", "tool_result"].includes(event.type) || ENDED.has(event.type)) this.later("questions", 30);
  },

  later(what, wait) {
    clearTimeout(this[`${what}Timer`]);
    this[`${what}Timer`] = setTimeout(() => this[what]().catch(() => {}), wait);
  },

  /** Draw what is new, at most once a frame. */
  draw() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      const { run, tree, detail } = page, { scrollTop } = detail.box;
      const atEnd = tree.scroll.scrollTop + tree.scroll.clientHeight >= tree.scroll.scrollHeight - 40;
      if (tree.words) tree.find(page.finder.value);
      else tree.refresh();
      if (atEnd && !tree.selected) tree.scroll.scrollTop = tree.scroll.scrollHeight;
      page.title();
      const row = tree.selected, mark = `${row ? row.events.length : run.events.length} ${row ? run.state(row) : run.status} ${run.requests.length}`;
      if (mark !== this.mark && !detail.box.contains(document.activeElement.closest("details, input"))) {
        detail.show(run, row);
        detail.box.scrollTop = scrollTop;
      }
      this.mark = mark;
    });
  },

  /** Read what has been sent; again if the run's end isn't in the store yet, and so neither its last requests. */
  async requests(tries = 20) {
    const doc = await ask("GET", `/api/runs/${this.id}`);
    page.run.setRequests(doc);
    this.here = doc.here;
    Object.assign(page.run.record, doc.run);
    for (const event of doc.events) page.run.add(event);
    this.mark = "";
    this.draw();
    this.buttons();
    const kept = doc.events.some((event) => ENDED.has(event.type));
    if (tries && !kept && page.run.finished) setTimeout(() => this.requests(tries - 1).catch(() => {}), 500);
  },

  async questions() {
    this.ask(await ask("GET", `/api/runs/${this.id}/questions`));
  },

  /** Show what the run waits for, and say what others have answered. */
  ask({ questions, answered, status, here }) {
    const box = document.getElementById("questions"), { run } = page;
    const shown = [...box.children].map((card) => card.dataset.id), open = new Set(questions.map((each) => each.id));
    for (const given of answered) if (shown.includes(given.id) && !open.has(given.id) && !this.mine.has(given.id)) this.tell(answeredText(given));
    showQuestions(box, questions, (each) => questionCard(each, (answer) => this.answer(each, answer, () => this.later("questions", 100))));
    // How a run ends, its last event says.
    if (!UNENDED.has(status) || run.finished || (status === run.record.status && here === this.here)) return;
    run.record.status = status;
    this.here = here;
    this.mark = "";
    this.draw();
    this.buttons();
  },

  mine: new Set(), // questions that were answered on this page

  async answer(question, answer, then) {
    this.mine.add(question.id);
    try {
      const done = await ask("POST", `${runPath(question.run_id, "/api")}/questions/${encodeURIComponent(question.id)}`, answer);
      if (!done.running) this.tell(done.message);
    } catch (error) {
      if (error.status === 409) this.tell(error.answered ? answeredText(error.answered) : `${line(question.tool || "The question")}: ${error.message}`);
      throw error;
    } finally { then(); }
  },

  /** Say something for a while. */
  tell(text) {
    const said = el("p", { class: "said", role: "alert" }, text);
    document.getElementById("questions").before(said);
    setTimeout(() => said.remove(), 15000);
  },

  buttons() {
    const { run } = page, { record } = run, box = document.getElementById("actions");
    const act = (text, does) => el("button", { type: "button", class: "act", onclick: (event) => { event.target.disabled = true; does().catch((error) => { event.target.disabled = false; alert(error.message); }); } }, text);
    for (const old of box.querySelectorAll(".act")) old.remove();
    const waits = ["stopped", "suspended"].includes(run.status);
    if (waits) box.append(act("Continue", () => ask("POST", `/api/runs/${this.id}/resume`, {}).then(() => this.later("questions", 0))));
    if (waits || (run.running && this.here)) box.append(act(waits ? "Drop" : "Stop", () => ask("DELETE", `/api/runs/${this.id}`)));
    if (run.finished) box.append(act("Save as a test", async () => {
      const { passes, report } = await ask("POST", `/api/runs/${this.id}/test`, {});
      page.dialog(passes ? "Saved as a test" : "Saved as a test, which doesn't pass", block(report, "data"));
    }));
    if (record.thread_id) box.append(el("a", { href: threadPath({ ...record, project: run.project }), class: "act" }, "Conversation"));
    if (run.finished && record.thread_id && this.own) {
      const form = messageForm("Send", async (text) => {
        location.href = `/runs/${(await ask("POST", "/api/runs", { input: text, entry: record.entry, thread: record.thread_id, project: run.project })).run_id}`;
      }, [], `Continue ${line(record.thread_id, 30)}`);
      form.classList.add("act", "chat");
      box.append(form);
    }
  },
};

if (!embedded) server.start();
