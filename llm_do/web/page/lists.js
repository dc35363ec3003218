// The lists of a server: its runs, what can be run, and two runs side by side.

/** The form that begins a run. */
function startForm(projects) {
  const choose = (label, name, values) => (values.length > 1 ? el("label", {}, label, el("select", { name }, values.map((each) => el("option", { value: each }, each)))) : null);
  const entries = el("span", {}), about = el("p", { class: "dim" });
  let form = null;
  const project = choose("Project", "project", projects.map((each) => each.name));
  const fill = () => {
    const chosen = projects.find((each) => project && each.name === project.querySelector("select").value) || projects[0];
    entries.replaceChildren(...[choose("Run", "entry", chosen.entries)].filter(Boolean));
    describe();
  };
  const chosenEntry = () => {
    const named = (box) => box && box.querySelector("select").value;
    const chosen = projects.find((each) => each.name === named(project)) || projects[0];
    return { chosen, entry: named(entries.firstChild) || chosen.entries[0] };
  };
  const describe = () => {
    const { chosen, entry } = chosenEntry(), optional = chosen.default && entry === chosen.entries[0], schema = (chosen.inputs || {})[entry];
    about.replaceChildren(...(schema ? ["Takes JSON: ", el("code", {}, inputShape(schema))] : []));
    if (form) form.querySelector("textarea").placeholder = optional ? "Input; leave it empty for the default" : "Input";
  };
  entries.addEventListener("change", describe);
  if (project) project.addEventListener("change", fill);
  fill();
  form = messageForm("Start", async (text, form) => {
    const value = (name) => (form.elements[name] ? form.elements[name].value.trim() : "");
    const { chosen, entry } = chosenEntry();
    const input = text && (chosen.inputs || {})[entry] ? parsedInput(text) : text || null;
    const body = { input, durable: form.elements.durable.checked, thread: value("thread") || null, project: value("project") || null, entry: entry === chosen.entries[0] ? null : entry };
    location.href = `/runs/${(await ask("POST", "/api/runs", body)).run_id}`;
  }, [project, entries, el("label", {}, "Conversation", el("input", { name: "thread", placeholder: "none", autocomplete: "off", maxlength: 200 })),
    el("label", { title: "Each step is kept: the run survives the server, and questions wait with nothing running" }, el("input", { type: "checkbox", name: "durable" }), "Durable"), about], "Input");
  describe();
  return form;
}

/** The fields of an input and their types, as an object is written. */
function inputShape(schema) {
  const needed = new Set(schema.required || []);
  const fields = Object.entries(schema.properties || {}).map(([name, field]) => `"${name}"${needed.has(name) ? "" : "?"}: ${field.type || "..."}`);
  return line(`{${fields.join(", ")}}`, 300);
}

/** The object that somebody has written as an input. */
function parsedInput(text) {
  let data;
  try { data = JSON.parse(text); } catch (error) { throw new Error(`The input isn't JSON: ${error.message}`); }
  if (!isObject(data)) throw new Error("The input has to be a JSON object");
  return data;
}

/** A form with a text; what fails is said below it. */
function messageForm(verb, send, more, placeholder) {
  const text = el("textarea", { rows: 2, placeholder, "aria-label": "Input" }), fault = el("p", { class: "fault", role: "alert" });
  const form = el("form", { class: "message-form" }, text, el("div", { class: "options" }, more, el("button", { type: "submit", class: "main" }, verb)), fault);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    fault.textContent = "";
    try { await send(text.value.trim(), form); } catch (error) { fault.textContent = error.message; }
  });
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });
  return form;
}

/** The table of runs, in which two can be chosen to be compared. */
function runTable(runs, chosen, several) {
  if (!runs.length) return el("p", { class: "empty" }, "No runs are recorded yet.");
  const head = ["", "Run", "Status", several ? "Project" : null, "Model", "Tokens", "Cost", "Started", "Time"].filter((text) => text !== null);
  return el("table", { class: "runs" }, el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, runs.map((run) => {
    const box = el("input", { type: "checkbox", "aria-label": `Compare ${shortId(run.run_id)}`, onchange: () => { chosen[box.checked ? "add" : "delete"](run.run_id); compareLink(chosen); } });
    box.checked = chosen.has(run.run_id);
    const used = run.usage || {};
    return el("tr", {}, el("td", {}, box),
      el("th", { scope: "row" }, el("a", { href: runPath(run.run_id) }, line(run.entry, 60)), " ", el("code", { class: "dim" }, shortId(run.run_id)), run.thread_id ? el("span", { class: "dim" }, " in ", el("a", { href: threadPath(run), class: "dim" }, line(run.thread_id, 30))) : ""),
      el("td", {}, chip(run.status), run.questions ? el("span", { class: "chip waiting" }, count(run.questions, "question")) : null), several ? el("td", {}, line(run.project, 40)) : null,
      el("td", {}, line(run.models[0] || "\u2013", 40)), el("td", {}, used.total_tokens ? number(used.total_tokens) : "\u2013"), el("td", {}, dollars(used.cost_usd) || "\u2013"),
      el("td", {}, clock(run.started)), el("td", {}, run.finished ? seconds(run.finished - run.started) : "\u2013"));
  })));
}

function compareLink(chosen) {
  const link = document.getElementById("compare");
  link.hidden = chosen.size !== 2;
  link.href = "/compare?" + new URLSearchParams([...chosen].map((id, at) => [["second", "first"][at], id]));
}

/** Two runs side by side. */
function comparison(data) {
  const { parting } = data;
  const lines = (texts) => el("pre", { class: "diff" }, texts.map((text) => el("span", { class: /^\+(?!\+\+)/.test(text) ? "added" : /^-(?!--)/.test(text) ? "removed" : "" }, visible(text), "\n")));
  const [head, ...rows] = data.rows;
  return [section("Where they diverge", parting ? [el("p", {}, el("b", {}, visible(parting.where)), ": ", visible(parting.what)), parting.diff.length ? lines(parting.diff) : null] : el("p", {}, "All requests and answers are the same.")),
    section("What they came to", el("table", {}, el("thead", {}, el("tr", {}, head.map((text, at) => el("th", { scope: "col" }, at ? el("a", { href: runPath(data.runs[at - 1].run_id) }, line(text)) : "")))),
      el("tbody", {}, rows.map(([name, ...values]) => el("tr", {}, el("th", { scope: "row" }, line(name)), values.map((text) => el("td", {}, line(text)))))))),
    data.output_diff.length ? section("Output", lines(data.output_diff)) : null];
}

const WORDS = { once: "Allow", all: "Allow all", session: "For this run", deny: "Deny", abort: "End the run", repeat: "Run it again", done: "It was carried out", fail: "It isn't known" };

/** A question that a run waits for; `answer` sends the answer, `link` leads to the run. */
function questionCard(question, answer, link) {
  const fault = el("p", { class: "fault", role: "alert" }), { agent, tool, answers, identical } = question;
  const give = async (value, note) => {
    try { await answer({ answer: value, digest: question.digest, ...(note ? { note } : {}) }); } catch (error) { fault.textContent = error.message; }
  };
  const button = (text, act, kind) => el("button", { type: "button", class: kind, onclick: act }, text);
  const card = (title, ...body) => el("section", { class: "question", "data-id": question.id }, el("h2", {}, title), link, body, fault);
  if (question.kind === "question") {
    const field = el("input", { "aria-label": "Answer", autocomplete: "off" });
    const form = el("form", { class: "options" }, question.choices.map((choice) => button(line(choice, 80), () => give(choice))), question.choices.length ? null : [field, el("button", { type: "submit", class: "main" }, "Answer")]);
    form.addEventListener("submit", (event) => { event.preventDefault(); give(field.value); });
    return card([el("code", {}, visible(agent)), " asks"], value(question.text), form);
  }
  const about = el("p", { class: "dim" }, visible(agent), " \u00b7 ", visible(question.reason || question.description || "")), called = el("code", {}, visible(tool));
  if (question.kind === "in_flight") return card(["Has ", called, " been carried out?"], about, fields(question.args), el("div", { class: "options" }, answers.map((each) => button(WORDS[each], () => give(each)))));
  const note = el("input", { placeholder: "Why not, for the model", "aria-label": "Reason for a denial", autocomplete: "off" });
  return card(["Allow ", called, "?"], about, fields(question.args),
    question.diff ? el("pre", { class: "diff" }, question.diff.split("\n").map((text) => el("span", { class: text[0] === "+" ? "added" : text[0] === "-" ? "removed" : "" }, visible(text), "\n"))) : null,
    el("div", { class: "options" }, answers.filter((each) => each !== "all" || identical > 1).map((each) => {
      const text = each === "once" && identical > 1 ? "Allow one" : each === "all" ? `Allow all ${identical}` : WORDS[each];
      const made = button(text, () => give(each, each === "deny" ? note.value.trim() : ""), each === "once" ? "main" : "");
      return each === "deny" ? [made, note] : made;
    })));
}

/** Who has answered a question, and what. */
const answeredText = (given) => `${line(given.tool || "The question", 60)} was answered: ${line(given.answer === "once" ? "allow" : given.answer, 80)}, by ${line(given.by || "a person", 60)}`;

/** Show questions in a box; a card that stays is left as it is, with what is being typed. */
function showQuestions(box, questions, make) {
  const old = new Map([...box.children].map((card) => [card.dataset.id, card]));
  box.replaceChildren(...questions.map((each) => old.get(each.id) || make(each)));
}
