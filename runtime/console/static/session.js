// One session: what was said, its values, and saying something more.

import { attempt, h, replace } from "./dom.js";
import { get } from "./net.js";
import { count, empty, json } from "./forms.js";
import { LiveRun, composer } from "./live.js";
import { Transcript } from "./transcript.js";

export function open(root, { id }) {
  const transcript = new Transcript();
  const values = h("div", {});
  const runs = h("div", { class: "runs-here" });
  const earlier = h("button", { type: "button", hidden: true }, "Earlier");
  const last = h("input", { type: "checkbox" });
  const leaving = new AbortController();
  let first = 0;
  let live = null;

  const put = (shown, messages) => shown.push(messages.map((message) => ({ kind: "message", agent: message.agent ?? "", message })));

  async function load() {
    const found = await get("session", { id });
    transcript.clear();
    put(transcript, found.messages);
    first = found.first;
    earlier.hidden = first === 0;
    earlier.textContent = `Earlier: ${count(first)} more`;
    replace(values, Object.keys(found.values).length ? json(found.values) : empty("No values."));
    if (!found.total) replace(runs, empty("This session has no messages yet."));
  }

  async function loadEarlier() {
    const found = await get("session", { id, before: first });
    const older = new Transcript();
    put(older, found.messages);
    transcript.element.before(older.element);
    first = found.first;
    earlier.hidden = first === 0;
    earlier.textContent = `Earlier: ${count(first)} more`;
  }

  async function send(words, button) {
    await attempt(button, async () => {
      await loaded; // what was said before stands above it, and must not come over it
      live?.close();
      transcript.said("user", words);
      transcript.toEnd();
      live = new LiveRun(transcript);
      replace(runs, live.head, live.waiting);
      line.element.scrollIntoView({ block: "nearest" });
      live.onended = refresh;
      await live.say("session/say", { id, text: words, start: last.checked ? "last" : "root" }, leaving.signal);
      await refresh();
    });
    line.field.focus();
  }

  async function refresh() {
    const found = await get("session", { id });
    replace(values, Object.keys(found.values).length ? json(found.values) : empty("No values."));
  }

  const line = composer("type a message", send);
  earlier.addEventListener("click", () => attempt(earlier, loadEarlier));
  replace(root, h("div", { class: "row" }, h("h1", { class: "grow id" }, id), h("a", { href: `#/runs?session=${encodeURIComponent(id)}` }, "runs")),
    h("div", { class: "columns side" },
      h("section", { class: "card chat" }, earlier, transcript.element, runs, line.element, h("label", { class: "row quiet" }, last, "start with the last agent")),
      h("section", { class: "card" }, h("h2", {}, "Values"), values)));
  const loaded = attempt(null, load);
  return { close() { leaving.abort(); live?.close(); } };
}

