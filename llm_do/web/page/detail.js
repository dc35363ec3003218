// What is known about one row, or about the run if no row is selected.

class Detail {
  constructor(box) {
    this.box = box;
    this.raw = false;
  }

  show(run, row) {
    Object.assign(this, { run, row });
    const body = this.raw ? [this.data()] : row ? this[row.kind](row) : this.overview();
    const back = el("button", { type: "button", class: "back", onclick: () => page.back() }, "\u2190 Rows");
    this.box.replaceChildren(...[back, row ? this.head(row) : null, ...body].flat().filter(Boolean));
    this.box.scrollTop = 0;
  }

  head(row) {
    const state = this.run.state(row);
    return el("header", { class: `head ${row.kind}` },
      el("h2", {}, el("span", { class: "mark" }), " ", visible(row.name), " ", chip(state)),
      el("p", { class: "dim" }, visible(row.path || ""), " \u00b7 ", seconds(this.run.took(row)), ` \u00b7 ${seconds(row.start - this.run.start) || "0 s"} after the start \u00b7 `,
        el("a", { href: `#${row.key}`, title: "A link to this row" }, "link")));
  }

  overview() {
    const { run } = this, { record } = run;
    return [this.banner(), ...this.ended(),
      section("Input", fields(plainInput(run.began ? run.began.input : null))),
      run.ended && run.ended.type === "run_finished" ? section("Output", value(run.ended.output)) : null,
      this.files(),
      this.agents(),
      section("Run", facts([
        ["id", el("code", {}, record.run_id)], ["entry", record.entry], ["thread", record.thread_id], ["user", record.user_id],
        ["models", record.models.join(", ")], ["started", clock(record.started)], ["events", number(run.events.length)],
        ["requests kept", run.requests.length ? number(run.requests.length) : this.gone()],
      ]))];
  }

  banner() {
    const { run } = this, id = shortId(run.record.run_id);
    const says = {
      running: ["The run is in progress", "What it has done so far is below."],
      stopped: ["The run was stopped before its end", `It is durable: \`llm-do resume ${id}\` continues it where it stopped.`],
      suspended: ["The run waits for a person", `Nothing is running now. \`llm-do resume ${id}\` asks, and continues it.`],
      interrupted: ["The run was interrupted", "Calls that were in flight may or may not have had an effect."],
      denied: ["A call was denied", "Nobody could be asked for an approval that the run needed."],
    }[run.status];
    if (!run.events.length) return el("div", { class: "banner" }, el("h2", {}, "Nothing is recorded of this run"), el("p", {}, "Its events were not kept."));
    if (!says) return null;
    const words = says[1].split("`").map((text, at) => (at % 2 ? el("code", {}, text) : text));
    return el("div", { class: `banner ${run.status}` }, el("h2", {}, says[0]), el("p", {}, words), this.open());
  }

  /** The calls that wait for a person, or were in flight. */
  open() {
    const open = [...this.run.byKey.values()].filter((row) => row.kind === "tool" && row.end === null);
    if (!open.length) return null;
    return el("ul", {}, open.slice(0, 20).map((row) => el("li", {}, el("a", { href: `#${row.key}` }, line(row.name)), " ", el("span", { class: "dim" }, line(this.run.summary(row))))));
  }

  ended() {
    const { ended } = this.run;
    if (!ended || ended.type !== "run_failed") return [];
    return [section("Why it ended", failure(ended.error))];
  }

  files() {
    const { files, record } = this.run, can = files.filter((file) => file.can_undo).length;
    if (!files.length) return null;
    const rows = files.slice(0, 200).map((file) => [file.change, [visible(file.path), " ", el("span", { class: "dim" }, visible(file.note))]]);
    if (files.length > 200) rows.push(["and", `${number(files.length - 200)} more`]);
    const how = can ? [el("code", {}, `llm-do undo ${shortId(record.run_id)}`), ` can restore ${number(can)} of ${number(files.length)}`] : files.every((file) => file.as_before) ? "All of them are as before the run" : "None of them can be restored";
    return section("Files changed", facts(rows), el("p", { class: "dim" }, how));
  }

  agents() {
    const sums = [...this.run.agents].sort((one, two) => (two[1].cost || 0) - (one[1].cost || 0) || two[1].input + two[1].output - one[1].input - one[1].output);
    if (!sums.length) return null;
    const most = Math.max(...sums.map(([, each]) => each.input + each.output), 1);
    const total = sums.reduce((sum, [, each]) => ({ requests: sum.requests + each.requests, input: sum.input + each.input, output: sum.output + each.output, cost: each.cost === null ? sum.cost : (sum.cost || 0) + each.cost }), { requests: 0, input: 0, output: 0, cost: null });
    const cells = (name, each, share) => el("tr", {}, el("th", { scope: "row" }, name, share === null ? null : el("i", { class: "share", style: { width: `${share * 100}%` } })),
      el("td", {}, number(each.requests)), el("td", {}, number(each.input)), el("td", {}, number(each.output)), el("td", {}, dollars(each.cost) || "\u2013"));
    const head = el("tr", {}, ["Agent", "Requests", "Tokens in", "out", "Cost"].map((text) => el("th", { scope: "col" }, text)));
    return section("Tokens and cost", el("table", {}, el("thead", {}, head),
      el("tbody", {}, sums.map(([name, each]) => cells(visible(name), each, (each.input + each.output) / most))),
      sums.length > 1 ? el("tfoot", {}, cells("Altogether", total, null)) : null));
  }

  gone() {
    const { record } = this.run;
    if (record.exchanges_dropped === "max_mb") return "dropped: all runs' together took more room than runtime.record.max_mb allows";
    if (record.exchanges_dropped) return "dropped: older than runtime.record.keep_days allows";
    return "none";
  }

  call(row) {
    const children = row.children.filter((child) => child.kind === "call").length;
    const tokens = row.tokens ? [["tokens", number(row.tokens)], ["cost", dollars(row.cost)]] : [];
    return [facts([["label", row.label], ...tokens, ["calls", children ? number(children) : ""]]), section("Input", fields(row.input)),
      row.output === null || row.output === undefined ? null : section("Output", value(row.output)),
      ...(row.tool ? this.decided(row) : []), row.result && row.result.error ? section("Error", failure(row.result.error)) : null, this.noOutput(row)];
  }

  noOutput(row) {
    const state = this.run.state(row);
    if (state === "running") return el("p", { class: "dim" }, "It has not ended yet.");
    if (state === "unfinished") return el("p", { class: "dim" }, "It had not ended when the run did.");
    return null;
  }

  note(row) {
    return [section(row.name === "warning" ? "Warning" : "What happened", value(row.text || ""))];
  }

  tool(row) {
    const { result } = row, changed = result && result.args;
    return [section("Arguments", fields(row.args)), changed ? section("Arguments after a hook changed them", fields(result.args)) : null,
      result && !result.error ? section(result.status === "success" ? "Result" : "Answer to the model", value(result.result)) : null,
      result && result.error ? section("Error", failure(result.error)) : null,
      ...this.decided(row),
      ...(row.changes || []).map((change) => section(`State of ${line(change.toolkit)}`, fields({ changed: change.updates, states: change.states }))),
      result ? facts([["duration", seconds(result.duration)], ["waited for a person", result.waited ? seconds(result.waited) : ""], ["size", result.size > 2000 ? count(result.size, "byte") : ""]]) : null,
      this.noOutput(row)];
  }

  /** What was decided about a tool call, and why. */
  decided(row) {
    const { result } = row, decision = result && result.decision;
    const rows = row.waits.flatMap(({ asked, answer, from, to }) => {
      if (!asked) return [["question", `a person was asked for ${seconds(to - from)}`]];
      const by = answer && ({ person: "a person", remembered: "an earlier answer", cancelled: "the end of the run" }[answer.by] || answer.by);
      return [["asked because", visible(asked.reason || (asked.rule ? `the rule ${asked.rule}` : "by default"))],
        ["answer", answer ? `${answer.decision === "allow" ? "allowed" : "denied"} by ${by} after ${seconds(to - from)}` : "none yet"]];
    });
    if (decision) {
      rows.unshift(["decision", chip({ allow: "allowed", deny: "denied", ask: "asked" }[decision.effect])]);
      rows.push(["why", decision.source === "person" && row.waits.length ? "" : visible(decision.reason || "")], ["rule", decision.rule && el("code", {}, visible(decision.rule))], ["where", decision.place && visible(decision.place)]);
    } else if (result && result.status === "refused") rows.push(["decision", "refused before it was decided about"]);
    return rows.length ? [section("Decision", facts(rows))] : [];
  }

  request(row) {
    const exchange = this.run.exchange(row);
    const used = row.usage || (exchange && exchange.usage) || {};
    const first = exchange && exchange.first_token ? seconds(exchange.first_token - exchange.begun) : "";
    const numbers = facts([["model", visible(row.model)], ["tokens", `${number(used.input_tokens || 0)} in, ${number(used.output_tokens || 0)} out`], ["cost", dollars(used.cost_usd)], ["first token after", first]]);
    const replaced = exchange ? exchange.hooks : row.events.filter((event) => event.type === "hook");
    const hooks = replaced.map((one) => section(`The hook ${line(one.hook)} replaced the ${line(one.replaced)}`,
      one.replaced === "settings" ? value(one.replacement) : [one.replacement].flat().map(message)));
    const again = row.retry ? section("Retry", el("p", {}, row.retry.model ? `asked ${line(row.retry.model)} instead` : `asked again after ${seconds(row.retry.delay)}`), value(row.retry.error)) : null;
    if (!exchange) {
      const why = this.run.running ? "What was sent is here when the request has ended." : `What was sent is not kept (${this.gone()}).`;
      return [numbers, again, hooks, row.text ? section("Text", value(row.text)) : null, el("p", { class: "dim" }, why)];
    }
    const sent = this.run.sent(exchange), setup = this.run.setups[exchange.setup], before = this.run.byNumber.get(exchange.previous);
    const complete = this.complete(setup, sent, exchange);
    if (!before) return [numbers, section("Sent", complete), this.answer(exchange), hooks, again];
    return [numbers, section(`New since request ${before.request}`, this.fresh(exchange, sent, setup, before)), this.answer(exchange), hooks, again,
      el("details", { class: "all" }, el("summary", {}, "All that was sent"), complete)];
  }

  fresh(exchange, sent, setup, before) {
    const old = this.run.setups[before.setup], found = [], lost = this.run.sent(before).length - exchange.kept;
    for (const name of ["model", "instructions", "tools", "output", "settings"]) {
      if (compact(old[name]) === compact(setup[name])) continue;
      const text = (one) => (typeof one === "string" ? one : pretty(one));
      found.push(el("h4", {}, `${name} changed`), difference(text(old[name]), text(setup[name])));
    }
    if (lost > 0) found.push(el("p", { class: "dim" }, `without ${count(lost, "message")} of request ${before.request}`));
    found.push(...sent.slice(exchange.kept).map(message));
    return found.length ? found : el("p", { class: "dim" }, `the same as request ${before.request}`);
  }

  complete(setup, sent, exchange) {
    const tools = setup.tools.map((tool) => {
      const { name, ...rest } = tool;
      return el("details", {}, el("summary", {}, el("code", {}, visible(name || "a tool of the provider"))), fields(rest));
    });
    return [setup.instructions ? [el("h4", {}, "instructions"), value(setup.instructions)] : null, tools.length ? [el("h4", {}, count(tools.length, "tool")), tools] : null,
      ["output", "settings"].filter((name) => Object.keys(setup[name] || {}).length).map((name) => [el("h4", {}, name), value(setup[name])]),
      sent.map(message), exchange.max_tokens ? el("p", { class: "dim" }, `max_tokens ${exchange.max_tokens}, since the budget allowed no more`) : null].flat(3).filter(Boolean);
  }

  answer(exchange) {
    const parts = [exchange.response ? message(exchange.response) : null, exchange.partial ? [el("h4", {}, "what had come before it broke off"), value(exchange.partial)] : null, exchange.failure ? failure(exchange.failure) : null];
    return section(exchange.failure ? "Failed" : "Answer", parts.flat().filter(Boolean));
  }

  data() {
    const { run, row } = this;
    const exchange = row && run.exchange(row);
    const data = row ? { events: row.events, ...(exchange ? { request: exchange, setup: run.setups[exchange.setup], messages: run.sent(exchange) } : {}) } : { run: run.record, events: run.events.slice(0, 1).concat(run.ended ? [run.ended] : []) };
    return section("Raw data", block(pretty(data), "data"));
  }
}

const section = (title, ...body) => el("section", { class: "part" }, el("h3", {}, title), body);
const chip = (state) => (state ? el("span", { class: `chip ${BAD.has(state) ? "bad" : state}` }, line(state.replace("_", " "), 30)) : null);

function facts(pairs) {
  const known = pairs.filter(([, one]) => one !== null && one !== undefined && one !== "" && one !== false);
  return known.length ? el("dl", { class: "facts" }, known.flatMap(([name, one]) => [el("dt", {}, name), el("dd", {}, one)])) : null;
}

function failure(error) {
  const { message: text, hint, file, line: at, block: lines, ...rest } = error;
  return el("div", { class: "failure" }, value(text || ""), hint ? el("p", {}, visible(hint)) : null,
    Array.isArray(lines) ? block(lines.join("\n"), "data") : lines ? block(String(lines), "data") : null,
    facts([["in", file ? visible(at ? `${file}:${at}` : file) : ""], ...Object.entries(rest).filter(([, one]) => one !== null && typeof one !== "object").map(([name, one]) => [name.replace("_", " "), visible(String(one))])]));
}

/** A message of a conversation: its parts, each under what it is. */
function message(data) {
  return el("div", { class: `message ${data.kind}` }, data.parts.map((part) => {
    const { part_kind: kind, content, args, tool_name: tool, tool_call_id: id, ...rest } = part;
    const call = id ? el("span", { class: "dim" }, ` ${line(id, 30)}`) : "";
    const labels = { "user-prompt": "user", "system-prompt": "system", "tool-call": "calls ", "tool-return": "result of ", "retry-prompt": "asked to try again" };
    const about = el("h4", {}, labels[kind] || line(kind || "part"), tool && labels[kind] ? el("code", {}, visible(tool)) : "", call);
    if (kind === "tool-call") return [about, fields(args ?? {})];
    const own = content === undefined ? rest : content;
    return [about, Array.isArray(own) && own.some((each) => typeof each === "string") ? own.map(value) : value(own)];
  }).flat(2));
}
