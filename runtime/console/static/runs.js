// All runs of the store, a page at a time.

import { attempt, h, replace, text } from "./dom.js";
import { get } from "./net.js";
import { ago, count, date, runLink, sessionLink, short, span, status, statusOf } from "./forms.js";

const STATUSES = ["running", "interrupted", "completed", "failed", "cancelled", "drained", "stuck"];
const MOST = 3000;

const row = (run) => h("tr", { data: { row: "" } },
  h("td", {}, runLink(run.id)), h("td", {}, status(statusOf(run))), h("td", {}, run.agent),
  h("td", {}, run.session_id ? sessionLink(run.session_id) : ""),
  h("td", { title: date(run.started) }, ago(run.started)), h("td", { class: "number" }, span((run.ended ?? run.updated) - run.started)),
  h("td", { class: "number" }, count(run.steps)), h("td", { class: "number" }, count(run.usage.input_tokens + run.usage.output_tokens)),
  h("td", { class: "wide" }, run.error ? h("span", { class: "error" }, short(run.error, 120)) : Object.entries(run.labels).map(([name, value]) => h("span", { class: "label" }, `${name}=${value}`))));

export function open(root, { query }) {
  const fields = {
    status: h("select", { "aria-label": "Status" }, h("option", { value: "" }, "any status"), STATUSES.map((one) => h("option", { value: one }, one))),
    agent: h("input", { placeholder: "agent", "aria-label": "Agent" }),
    session: h("input", { placeholder: "session", "aria-label": "Session" }),
    label: h("input", { placeholder: "label: tenant=acme", "aria-label": "Label" }),
  };
  for (const [name, field] of Object.entries(fields)) field.value = query.get(name) ?? "";
  const body = h("tbody", {});
  const more = h("button", { type: "button" }, "More");
  const note = h("p", { class: "quiet" });
  const one = h("input", { placeholder: "run id", "aria-label": "Run id" });
  const wanted = () => Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value.trim()]));
  let last = null;
  let asked = 0;

  async function load(fresh) {
    const turn = ++asked;
    const found = await get("runs", { ...wanted(), limit: 100, after: fresh ? "" : last });
    if (turn !== asked) return;
    if (fresh) replace(body);
    body.append(...found.runs.map(row));
    last = found.runs.at(-1)?.id ?? last;
    const full = body.children.length >= MOST;
    more.hidden = !found.more || full;
    text(note, !body.children.length ? "No matching runs." : full ? `The ${count(MOST)} newest. Narrow the filter to see others.` : found.more ? `The ${count(body.children.length)} newest.` : `${count(body.children.length)} in total.`);
  }

  const again = (event) => {
    event?.preventDefault();
    const kept = new URLSearchParams(Object.entries(wanted()).filter(([, value]) => value)).toString();
    history.replaceState(null, "", `#/runs${kept ? `?${kept}` : ""}`);
    return attempt(null, () => load(true));
  };
  more.addEventListener("click", () => attempt(more, () => load(false)));
  for (const field of Object.values(fields)) field.addEventListener("change", again);
  const go = (event) => {
    event.preventDefault();
    if (one.value.trim()) location.hash = `#/run/${encodeURIComponent(one.value.trim())}`;
  };
  replace(root, h("h1", {}, "Runs"),
    h("div", { class: "row wrap" }, h("form", { class: "row wrap grow", onsubmit: again }, Object.values(fields), h("button", {}, "Filter")), h("form", { class: "row", onsubmit: go }, one, h("button", {}, "Open"))),
    h("div", { class: "scroll" }, h("table", { class: "runs" },
      h("thead", {}, h("tr", {}, ["Run", "Status", "Agent", "Session", "Started"].map((name) => h("th", {}, name)), ["Duration", "Events", "Tokens"].map((name) => h("th", { class: "number" }, name)), h("th", {}, ""))), body)),
    h("div", { class: "row" }, more, note));
  again();
  return {};
}

