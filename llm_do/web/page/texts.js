// Elements, and texts for people: whatever a run holds gets on the page as text, never as markup.

const MOST_CHARACTERS = 20000; // of one text, until all of it is asked for

/** Make an element. Children are elements or strings; strings become text. */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) made.style.setProperty(key, one);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

// What would be invisible, or change the order of what is read, is spelled out. An emoji's joiners stay.
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb]|\udb40[\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const spelled = (character) =>
  character.split("").map((unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0")).join("");

/** A text as nodes, with whatever is invisible spelled out. */
function visible(text) {
  const nodes = [];
  let last = 0;
  for (const found of text.matchAll(INVISIBLE)) {
    if (found[0] === "\r" && text[found.index + 1] === "\n") continue;
    nodes.push(text.slice(last, found.index), el("span", { class: "spelled" }, spelled(found[0])));
    last = found.index + 1;
  }
  nodes.push(text.slice(last));
  return nodes;
}

/** The beginning of a generated id, which names its run. */
const shortId = (id) => (/^[0-9a-f]{32}$/.test(id) ? id.slice(0, 12) : id);

/** A text on one line, cut short. */
function line(value, most = 160) {
  const text = typeof value === "string" ? value : compact(value);
  const cut = text.length > most * 2 ? text.slice(0, most * 2) : text;
  const flat = cut.replace(/\s+/g, " ").replace(INVISIBLE, spelled).trim();
  return flat.length > most || cut.length < text.length ? flat.slice(0, most) + "\u2026" : flat;
}

const exact = (json) => json.replace(/\{\s*"\$number":\s*"([^"]*)"\s*\}/g, "$1");
const compact = (value) => exact(JSON.stringify(value) ?? "");
const pretty = (value) => exact(JSON.stringify(value, null, 2) ?? "");
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isNumber = (value) => isObject(value) && "$number" in value && Object.keys(value).length === 1;

/** A long text as a block. */
function block(text, kind = "text") {
  const made = el("pre", { class: kind, dir: "auto" });
  if (text.length <= MOST_CHARACTERS) {
    made.append(...visible(text));
    return made;
  }
  const button = el("button", { type: "button", class: "more" }, `Show all ${count(text.length, "character")}`);
  made.append(...visible(text.slice(0, MOST_CHARACTERS)), "\u2026");
  button.addEventListener("click", () => {
    made.replaceChildren(...visible(text));
    button.remove();
  });
  return el("div", {}, made, button);
}

/** Any value. */
function value(data) {
  if (typeof data === "string") return data === "" ? el("span", { class: "dim" }, "empty text") : block(data);
  if (data === null || data === undefined) return el("span", { class: "dim" }, "none");
  if (typeof data !== "object" || isNumber(data)) return el("code", {}, compact(data));
  return block(pretty(data), "data");
}

/** The fields of an object, each with its name; any other value as it is. */
function fields(data) {
  if (!isObject(data) || isNumber(data)) return value(data);
  const names = Object.keys(data);
  if (!names.length) return el("span", { class: "dim" }, "none");
  return el("dl", { class: "fields" }, names.flatMap((name) => [el("dt", {}, visible(name)), el("dd", {}, value(data[name]))]));
}

/** What a call was given: a prompt alone is shown as a text. */
function plainInput(input) {
  if (!isObject(input)) return input;
  const { attachments, ...rest } = input;
  const kept = Array.isArray(attachments) && attachments.length ? input : rest;
  const names = Object.keys(kept);
  return names.length === 1 && names[0] === "input" ? kept.input : kept;
}

function seconds(amount) {
  if (amount === null || amount === undefined || !isFinite(amount)) return "";
  if (amount < 0.0005) return "0 ms";
  if (amount < 0.995) return `${Math.round(amount * 1000)} ms`;
  if (amount < 59.95) return `${amount.toFixed(amount < 9.95 ? 2 : 1)} s`;
  if (amount < 3600) return `${Math.floor(amount / 60)} min ${Math.round(amount % 60)} s`;
  if (amount < 86400) return `${Math.floor(amount / 3600)} h ${Math.round((amount % 3600) / 60)} min`;
  return `${Math.floor(amount / 86400)} d ${Math.round((amount % 86400) / 3600)} h`;
}

const number = (amount) => Math.round(amount).toLocaleString("en-US");
const count = (amount, noun) => `${number(amount)} ${noun}${amount === 1 ? "" : "s"}`;
const dollars = (amount) => (amount === null || amount === undefined ? "" : `$${amount.toFixed(amount < 1 ? 4 : 2)}`);
const clock = (time) => new Date(time * 1000).toLocaleString("sv-SE");

/** The differences of two texts, line by line: [sign, line] of each. */
function differences(before, after) {
  const one = before.split("\n"), two = after.split("\n");
  let head = 0, tail = 0;
  while (head < one.length && head < two.length && one[head] === two[head]) head++;
  while (tail < one.length - head && tail < two.length - head && one[one.length - 1 - tail] === two[two.length - 1 - tail]) tail++;
  const old = one.slice(head, one.length - tail), now = two.slice(head, two.length - tail);
  const found = [];
  if (old.length * now.length > 4e6) return [...old.map((text) => ["-", text]), ...now.map((text) => ["+", text])];
  const width = now.length + 1, best = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      best[i * width + j] = old[i] === now[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  let i = 0, j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) found.push([" ", old[i++]]), j++;
    else if (i < old.length && (j >= now.length || best[(i + 1) * width + j] >= best[i * width + j + 1])) found.push(["-", old[i++]]);
    else found.push(["+", now[j++]]);
  }
  const around = (text) => [" ", text];
  return [...one.slice(Math.max(0, head - 2), head).map(around), ...found, ...one.slice(one.length - tail, one.length - tail + 2).map(around)];
}

function difference(before, after) {
  return el("pre", { class: "diff" }, differences(before, after).map(([sign, text]) =>
    el("span", { class: sign === "+" ? "added" : sign === "-" ? "removed" : "" }, `${sign} `, visible(text), "\n")));
}
