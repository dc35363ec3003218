// A run as rows: made of its events one by one, so that a run in progress grows as one that has ended is read.

const ENDED = new Set(["run_finished", "run_failed"]);

class Run {
  constructor(doc) {
    Object.assign(this, { record: doc.run, project: doc.project, setups: doc.setups, messages: doc.messages });
    this.roots = [];
    this.byKey = new Map();
    this.events = [];
    this.pauses = []; // the times when a durable run was stopped
    this.agents = new Map();
    this.calls = new Map();
    this.tools = new Map();
    this.attempts = new Map();
    this.latest = new Map(); // the last request of each call
    this.hooks = new Map(); // what hooks replaced of each call's next request
    this.changes = new Map(); // changed states that belong to the next result of a call
    this.start = this.record.started;
    this.last = this.start;
    this.setRequests(doc);
    for (const event of doc.events) this.add(event);
  }

  setRequests(doc) {
    Object.assign(this, { setups: doc.setups, messages: doc.messages, requests: doc.requests, files: doc.files });
    this.exchanges = new Map(doc.requests.map((each) => [exchangeKey(each), each]));
    this.byNumber = new Map(doc.requests.map((each) => [each.number, each]));
  }

  get finished() { return Boolean(this.ended); }
  get running() { return !this.ended && this.record.status === "running"; }
  get status() { return this.ended ? this.ended.status : this.record.status; }
  get end() { return this.running ? Math.max(Date.now() / 1000, this.last) : this.last; }

  exchange(row) { return row.request ? this.exchanges.get(row.request) : undefined; }

  /** The messages of a request, in order. */
  sent(exchange) {
    const found = [];
    for (let at = exchange.last_message; at >= 0; at = this.messages[at][0]) found.push(this.messages[at][1]);
    return found.reverse();
  }

  add(event) {
    if (this.events.length && event.seq <= this.events[this.events.length - 1].seq) return;
    this.events.push(event);
    if (event.time < this.start) this.start = event.time;
    const before = this.last;
    this.last = Math.max(this.last, event.time);
    const take = this[`on_${event.type}`];
    if (take) take.call(this, event, before);
  }

  row(event, kind, name, parent) {
    const made = {
      key: `e${event.seq}`, kind, name, parent, children: [], depth: parent ? parent.depth + 1 : 0, start: event.time,
      end: null, status: "", events: [event], waits: [], agent: event.agent_name, path: event.path, call: event.call_id,
    };
    (parent ? parent.children : this.roots).push(made);
    this.byKey.set(made.key, made);
    return made;
  }

  on_run_started(event) { this.began = event; }
  on_run_finished(event) { this.finish(event); }
  on_run_failed(event) { this.finish(event); }

  finish(event) {
    this.ended = event;
    // The record says of a killed run when it was noticed, not when it ended.
    if (this.events.length > 1 && event.status === "interrupted") this.last = this.events[this.events.length - 2].time;
  }

  on_run_resumed(event, before) {
    if (event.time > before) this.pauses.push([before, event.time]);
    const made = this.row(event, "note", "resumed", null);
    Object.assign(made, { end: event.time, text: `attempt ${event.attempt}, after ${count(event.steps, "step")}; it had stopped for ${seconds(event.time - before)}` });
    delete this.ended;
  }

  on_call_started(event) {
    const parent = this.calls.get(event.parent_call_id);
    const id = parent && event.call_id.startsWith(event.parent_call_id + ".") ? event.call_id.slice(event.parent_call_id.length + 1) : "";
    let made = this.tools.get(`${event.parent_call_id} ${id}`); // an agent called as a tool is one row
    if (made && made.kind === "tool") {
      made.events.push(event);
      made.kind = "call";
    } else made = this.row(event, "call", event.agent_name, parent || null);
    Object.assign(made, { name: event.agent_name, label: event.label, input: plainInput(event.input), call: event.call_id, path: event.path, agent: event.agent_name, tokens: 0, cost: null });
    made.began = event.time;
    this.calls.set(event.call_id, made);
  }

  on_call_finished(event) {
    const row = this.calls.get(event.call_id);
    if (!row) return;
    row.events.push(event);
    Object.assign(row, { end: event.time, status: event.status, output: event.output });
  }

  on_model_request(event) {
    const what = event.purpose === "summary" ? "summary" : "request";
    const again = event.attempt > 1 ? `, attempt ${event.attempt}` : "";
    const row = this.row(event, "request", `${what} ${event.request}${again}`, this.calls.get(event.call_id) || null);
    Object.assign(row, { model: event.model, request: exchangeKey(event) });
    this.attempts.set(row.request, row);
    this.latest.set(event.call_id, row);
    row.events.push(...(this.hooks.get(event.call_id) || []));
    this.hooks.delete(event.call_id);
  }

  /** What a hook replaced: of a request it is said before the request is made. */
  on_hook(event) {
    const row = this.latest.get(event.call_id);
    if (event.replaced === "response") { if (row) row.events.push(event); }
    else this.hooks.set(event.call_id, [...(this.hooks.get(event.call_id) || []), event]);
  }

  on_usage(event) {
    const used = event.usage, row = this.attempts.get(exchangeKey(event));
    if (row) {
      row.events.push(event);
      Object.assign(row, { end: event.time, usage: used });
      if (!row.status) row.status = "completed";
    }
    const call = this.calls.get(event.call_id);
    const sums = this.agents.get(event.agent_name) || { requests: 0, input: 0, output: 0, cost: null, models: new Set() };
    sums.requests += used.requests ?? 1;
    sums.input += used.input_tokens || 0;
    sums.output += used.output_tokens || 0;
    sums.models.add(event.model);
    const tokens = (used.input_tokens || 0) + (used.output_tokens || 0);
    if (call) call.tokens += tokens;
    if (used.cost_usd !== null && used.cost_usd !== undefined) {
      sums.cost = (sums.cost || 0) + used.cost_usd;
      if (call) call.cost = (call.cost || 0) + used.cost_usd;
    }
    this.agents.set(event.agent_name, sums);
  }

  on_retry(event) {
    const row = this.latest.get(event.call_id);
    if (!row) return;
    row.events.push(event);
    Object.assign(row, { status: "failed", retry: event, end: row.end || event.time });
  }

  on_text_done(event) { this.said(event, "text"); }
  on_thinking(event) { this.said(event, "thinking"); }

  said(event, name) {
    const row = this.latest.get(event.call_id);
    if (!row) return;
    row.events.push(event);
    row[name] = row[name] ? `${row[name]}\n${event.text}` : event.text;
  }

  on_tool_call(event) {
    const row = this.row(event, "tool", event.tool_name, this.calls.get(event.call_id) || null);
    Object.assign(row, { tool: event.tool_name, args: event.args });
    const request = this.latest.get(event.call_id);
    if (request) request.asked = [...(request.asked || []), event.tool_name];
    this.tools.set(`${event.call_id} ${event.tool_call_id}`, row);
  }

  on_approval_requested(event) {
    const row = this.tools.get(`${event.call_id} ${event.tool_call_id}`);
    if (!row) return;
    row.events.push(event);
    row.waits.push({ from: event.time, to: null, asked: event, answer: null });
  }

  on_approval_resolved(event) {
    const row = this.tools.get(`${event.call_id} ${event.tool_call_id}`);
    const wait = row && row.waits[row.waits.length - 1];
    if (!row) return;
    row.events.push(event);
    if (wait && wait.to === null) Object.assign(wait, { to: event.time, answer: event });
  }

  on_tool_result(event) {
    const row = this.tools.get(`${event.call_id} ${event.tool_call_id}`);
    if (!row) return;
    row.events.push(...(this.changes.get(event.call_id) || []), event);
    row.changes = this.changes.get(event.call_id);
    this.changes.delete(event.call_id);
    row.result = event;
    if (!row.waits.length && event.waited > 0) row.waits.push({ from: row.start, to: row.start + event.waited, asked: null, answer: null });
    row.end = event.time;
    row.status = row.kind === "call" && row.status && event.status === "success" ? row.status : event.status;
  }

  on_state_changed(event) {
    this.changes.set(event.call_id, [...(this.changes.get(event.call_id) || []), event]);
  }

  on_handoff(event) {
    const row = this.row(event, "note", `hands over to ${event.to}`, this.calls.get(event.call_id) || null);
    Object.assign(row, { end: event.time, text: event.reason });
  }

  on_guard(event) {
    const row = this.row(event, "note", `${event.guard} replaced the ${event.side}`, this.calls.get(event.call_id) || null);
    Object.assign(row, { end: event.time, text: event.replacement });
  }

  on_warning(event) {
    const row = this.row(event, "note", "warning", this.calls.get(event.call_id) || null);
    Object.assign(row, { end: event.time, text: event.message, status: "warning" });
  }

  /** How a row has ended, or that it hasn't. */
  state(row) {
    const failure = this.exchange(row);
    if (failure && failure.failure) return "failed";
    if (row.end !== null) return row.status;
    if (row.waits.some((wait) => wait.to === null) && !this.ended) return "waiting";
    return this.running ? "running" : "unfinished";
  }

  endOf(row) { return row.end === null ? this.end : row.end; }

  took(row) { return this.endOf(row) - (row.began || row.start); }

  /** What a row's line says after its name. */
  summary(row) {
    if (row.kind === "note") return line(row.text || "");
    if (row.kind === "call") {
      const input = line(row.input ?? "", 90), output = row.output === null || row.output === undefined ? "" : line(row.output, 90);
      return [row.label ? `[${line(row.label, 40)}]` : "", input, output && `\u2192 ${output}`].filter(Boolean).join("  ");
    }
    if (row.kind === "tool") {
      const given = isObject(row.args) ? Object.entries(row.args).map(([name, one]) => `${name}=${line(one, 40)}`).join(", ") : line(row.args ?? "", 80);
      return [`(${line(given, 90)})`, row.result ? `\u2192 ${line(row.result.result, 90)}` : ""].join(" ");
    }
    if (row.retry) return line(row.retry.error, 120);
    const failure = (this.exchange(row) || {}).failure;
    if (failure) return failureText(failure);
    return line(row.text || (row.asked ? `\u2192 ${row.asked.join(", ")}` : ""), 120);
  }

  /** A row's text for the finder, in lower case. */
  text(row) {
    const exchange = this.exchange(row);
    const said = exchange ? JSON.stringify([exchange.response, exchange.failure]) : "";
    const marks = row.events.length === row.searched ? row.marks : undefined;
    if (marks !== undefined && row.exchange === exchange) return marks;
    Object.assign(row, { searched: row.events.length, exchange });
    row.marks = (row.name + " " + row.path + JSON.stringify(row.events.map(ownFields)) + said).toLowerCase();
    return row.marks;
  }
}

const COMMON = new Set(["seq", "time", "run_id", "call_id", "parent_call_id", "depth", "path"]);
const ownFields = (event) => Object.fromEntries(Object.entries(event).filter(([name]) => !COMMON.has(name)));
const exchangeKey = (one) => `${one.call_id} ${one.purpose} ${one.request} ${one.attempt}`;
const failureText = (failure) => line(typeof failure === "string" ? failure : failure.message || compact(failure), 160);

/** Places on the axis of time, in which a stop of a durable run takes little room whatever it lasted. */
class Scale {
  constructor(run) {
    const total = Math.max(run.end - run.start, 1e-6);
    const paused = run.pauses.reduce((sum, [from, to]) => sum + to - from, 0);
    this.start = run.start;
    this.busy = Math.max(total - paused, 1e-6);
    this.width = this.busy * 0.04; // of one pause
    this.pauses = run.pauses;
    this.total = this.busy + this.width * run.pauses.length;
  }

  at(time) {
    let place = time - this.start;
    for (const [from, to] of this.pauses) {
      if (time >= to) place += this.width - (to - from);
      else if (time > from) place += (time - from) * (this.width / (to - from) - 1);
    }
    return Math.min(Math.max(place / this.total, 0), 1) * 100;
  }

  /** The ticks: [place, text]. */
  ticks() {
    if (this.pauses.length) return [[0, "0"], [100, seconds(this.busy)]];
    const raw = this.total / 4, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw);
    const found = [];
    for (let at = 0; at <= this.total * 0.94; at += step) found.push([(at / this.total) * 100, at ? seconds(at) : "0"]);
    return found;
  }
}
