// Conversations: the list of them, and one of them with its turns, where the next message is written.

/** The address of a run's or a list's conversation. */
function threadPath(of) {
  return "/threads?" + new URLSearchParams([["thread", of.thread_id], ["project", of.project || ""], ["user", of.user_id || ""]].filter(([, text]) => text));
}

/** Links to the lists of a server. */
function places(here) {
  const link = ([name, href]) => el("a", { href, "aria-current": name === here ? "page" : null }, name);
  return el("nav", { class: "places", "aria-label": "Lists" }, [["Runs", "/"], ["Conversations", "/threads"]].map(link));
}

function threadTable(threads, several) {
  if (!threads.length) return el("p", { class: "empty" }, "There are no conversations yet. A run begins one if you name it in the field \u201cConversation\u201d.");
  const users = threads.some((each) => each.user_id !== null);
  const head = ["Conversation", users ? "User" : null, several ? "Project" : null, "Messages", "Last changed"].filter(Boolean);
  return el("table", { class: "runs" }, el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, threads.map((each) =>
    el("tr", {}, el("th", { scope: "row" }, el("a", { href: threadPath(each) }, line(each.thread_id, 60))), users ? el("td", {}, line(each.user_id || "\u2013", 40)) : null,
      several ? el("td", {}, line(each.project, 40)) : null, el("td", {}, number(each.messages)), el("td", {}, clock(each.updated))))));
}

/** One conversation. A message that is sent begins a run, whose questions are asked here. */
class Conversation {
  constructor(server, path) {
    Object.assign(this, { server, path, turns: el("div", { class: "turns", role: "log", "aria-label": "Messages" }), waiting: el("div", {}), state: el("p", { class: "dim", role: "status" }), form: el("div", {}), more: el("div", {}) });
  }

  async show() {
    this.server.list(places(""), this.turns, this.state, this.waiting, this.form, this.more);
    await this.read();
    const { mine, user_id: user, entry } = this.data;
    if (mine && entry) this.form.append(messageForm("Send", (text, form) => this.send(text, form), [], "Message"));
    else this.form.append(el("p", { class: "dim" }, mine ? "No run of this conversation is recorded, so its entry isn't known; start one from the list of runs." : ["This is a conversation of ", el("b", {}, line(user || "nobody", 60)), ", which only that user's key continues."]));
    this.turns.lastElementChild && this.turns.lastElementChild.scrollIntoView({ block: "nearest" });
    setInterval(() => { if (!document.hidden) this.refresh().catch(() => {}); }, 1500);
  }

  async read() {
    const data = (this.data = await ask("GET", this.path));
    document.title = `${line(data.thread_id, 40)} \u00b7 llm-do`;
    document.getElementById("title").replaceChildren(el("h1", {}, el("span", { class: "dim" }, visible(data.project), " / "), visible(data.thread_id)),
      el("p", { class: "dim" }, [count(data.messages, "message"), `last changed ${clock(data.updated)}`, data.user_id ? `user ${line(data.user_id, 60)}` : ""].filter(Boolean).join(" \u00b7 ")));
    const text = JSON.stringify(data.turns);
    if (text !== this.drawn) this.turns.replaceChildren(...turnCards(data));
    this.drawn = text;
    this.more.replaceChildren(...[["State", data.state], ["Settings", data.settings]].filter(([, kept]) => Object.keys(kept).length).map(([title, kept]) => section(title, fields(kept))));
    await this.follow();
  }

  /** What the latest run does, unless it has completed. */
  async follow() {
    const { run_id: run, status } = this.data.latest || {};
    const found = UNENDED.has(status) ? await ask("GET", `${runPath(run, "/api")}/questions`) : { questions: [], status };
    showQuestions(this.waiting, found.questions, (each) => questionCard(each, (answer) => this.server.answer(each, answer, () => this.refresh().catch(() => {}))));
    const shown = run && found.status !== "completed";
    this.state.replaceChildren(...(shown ? [el("a", { href: runPath(run) }, `Run ${shortId(run)}`), " ", chip(found.status), found.questions.length ? " waits for you." : ""] : []));
  }

  async refresh() {
    const before = this.data.turns.length;
    await this.read();
    if (this.data.turns.length > before) this.turns.lastElementChild.scrollIntoView({ block: "nearest" });
  }

  async send(text, form) {
    const { thread_id: thread, project, entry } = this.data;
    await ask("POST", "/api/runs", { input: text, entry, thread, project });
    form.querySelector("textarea").value = "";
    await this.refresh();
  }
}

/** The turns of a conversation; the first of each run leads to it. */
function turnCards(data) {
  const cards = [];
  if (data.messages && !data.turns.length) cards.push(el("p", { class: "empty" }, "Nothing has been said yet."));
  let last = null;
  for (const each of data.turns) {
    const lead = each.run_id && each.run_id !== last ? el("a", { href: runPath(each.run_id), class: "dim" }, `run ${shortId(each.run_id)}`) : null;
    last = each.run_id;
    if (each.who === "call") cards.push(el("details", { class: "turn call" }, el("summary", {}, el("code", {}, visible(each.tool)), " ", el("span", { class: "dim" }, line(each.args, 120))), isObject(each.args) ? fields(each.args) : value(each.args)));
    else if (each.who === "result") cards.push(el("details", { class: "turn result" }, el("summary", {}, el("code", {}, visible(each.tool)), each.outcome === "success" ? " answered: " : ` ${line(each.outcome, 30)}: `, line(each.text, 120)), block(each.text)));
    else cards.push(el("article", { class: `turn ${each.who}` }, el("h3", {}, { user: "User", agent: "Agent", note: "Instructions" }[each.who], " ", el("span", { class: "dim" }, clock(each.time)), " ", lead), block(each.text)));
  }
  return cards;
}
