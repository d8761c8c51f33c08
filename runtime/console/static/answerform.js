// Answering one thing that a run waits for.

import { attempt, h, notice } from "./dom.js";
import { get, post } from "./net.js";
import { ago, json, runLink, sessionLink } from "./forms.js";

const by = () => document.getElementById("who").value.trim();

async function send(run, context, body, done) {
  const response = await post("run/answer", { id: run.id, interrupt: context.id, save: run.save ?? "", by: by(), ...body });
  const state = await response.json();
  notice(state.id === run.id ? `Answered: run ${run.id} is ${state.status}.` : `Answered: the run continues as branch ${state.id}.`);
  await done?.(state);
}

function approval(run, context, done) {
  let given = context.arguments;
  let seen = null;
  const field = h("textarea", { rows: Math.min(12, given.split("\n").length + 1), value: given, "aria-label": "Arguments of the call", spellcheck: "false" });
  const reason = h("input", { placeholder: "reason, which the model receives", "aria-label": "Reason for the denial", maxlength: "2000" });
  const approve = h("button", { type: "button", class: "main", data: { act: "approve" } }, "Approve");
  const deny = h("button", { type: "button", class: "danger", data: { act: "deny" } }, "Deny");
  field.addEventListener("input", () => { approve.textContent = field.value === given ? "Approve" : "Approve with these arguments"; });
  const rest = h("button", { type: "button", data: { act: "more" } }, "");
  const limit = () => {
    rest.hidden = !context.more;
    rest.textContent = `Show the rest (${context.more.toLocaleString("en")} characters) to enable approval`;
    approve.disabled = field.readOnly = context.more > 0;
  };
  rest.addEventListener("click", () => attempt(rest, async () => {
    const part = await get("run/arguments", { id: run.id, interrupt: context.id, save: run.save ?? "", after: given.length });
    given += part.text;
    field.value = given;
    context.more = part.more;
    seen = part.seen;
    field.scrollTop = field.scrollHeight;
    limit();
  }));
  limit();
  approve.addEventListener("click", () => attempt(approve, async () => {
    // As text, which the server reads: a browser would round numbers.
    await send(run, context, { kind: "approve", seen, ...(field.value === given ? {} : { arguments: field.value }) }, done);
  }));
  deny.addEventListener("click", () => attempt(deny, () => send(run, context, { kind: "deny", reason: reason.value }, done)));
  return [h("p", {}, "wants to call ", h("b", {}, context.info?.tool_name ?? "a tool")), field, rest, h("div", { class: "row wrap" }, approve, h("span", { class: "row grow" }, deny, reason))];
}

function question(run, context, done) {
  const field = h("textarea", { rows: "3", placeholder: "answer", "aria-label": "Answer" });
  const asJson = h("input", { type: "checkbox" });
  const button = h("button", { type: "button", class: "main", data: { act: "approve" } }, "Answer");
  const give = () => attempt(button, async () => {
    return send(run, context, asJson.checked ? { kind: "json", json: field.value } : { kind: "text", value: field.value }, done);
  });
  button.addEventListener("click", give);
  field.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) give(); });
  const yes = h("button", { type: "button", onclick: () => attempt(yes, () => send(run, context, { kind: "json", value: true }, done)) }, "Yes");
  const no = h("button", { type: "button", data: { act: "deny" }, onclick: () => attempt(no, () => send(run, context, { kind: "json", value: false }, done)) }, "No");
  const asked = context.info === null ? null : typeof context.info === "string" ? h("p", { class: "asked" }, context.info) : json(context.info);
  return [asked, field, h("div", { class: "row wrap" }, button, yes, no, h("label", { class: "row" }, asJson, "as JSON"))];
}

// A card with the form. `done` is called with the run's state, once it is answered.
export function answerCard(run, context, done, { withRun = true, canGoOn = true } = {}) {
  const where = context.address.map((step) => step.replace(/^agent:/, "").replace(/^tool:/, "tool ").replace(/\(.*\)$/, "")).join(" › ");
  const form = canGoOn ? (context.approval ? approval(run, context, done) : question(run, context, done)) : [json(context.info), h("p", { class: "quiet" }, "This console has no definition of the agent, so it cannot resume the run.")];
  const head = withRun ? [runLink(run.id), run.session_id ? sessionLink(run.session_id) : null] : [];
  return h("section", { class: "card waits", tabindex: "0", data: { row: "", interrupt: context.id } },
    h("header", { class: "row wrap" }, h("b", { class: "grow" }, where), head, h("time", { class: "quiet", title: "waiting since" }, ago(run.updated))), form);
}

// What was answered, and by whom.
export function answered(notes) {
  return notes.map((note) => h("li", { class: note.refused ? "refused" : "" },
    h("b", {}, note.by || "someone"), ` ${{ approve: "approved", "approve with other arguments": "approved with other arguments", deny: "denied", text: "answered", json: "answered" }[note.kind] ?? note.kind} `, h("span", {}, note.asks), note.answer ? h("q", {}, note.answer) : null,
    " ", h("time", { class: "quiet" }, ago(note.at)), note.refused ? h("small", { class: "error" }, ` refused: ${note.refused}`) : null));
}

