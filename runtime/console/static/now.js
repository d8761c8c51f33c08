// What is going on at this moment.

import { h, keyed, replace, text } from "./dom.js";
import { every, get } from "./net.js";
import { ago, count, empty, rate, runLink, sessionLink, short, span } from "./forms.js";

const LISTS = [
  ["working", "Running", "No runs are running."],
  ["lost", "Without a process", "All running runs have a process."],
  ["waiting", "Waiting for an answer", "No runs are waiting."],
  ["stuck", "Stuck", "No runs are stuck."],
];

function tile(label, href) {
  const value = h("b", {}, "–");
  const note = h("small", {});
  const element = h(href ? "a" : "div", { class: "tile", href }, h("span", {}, label), value, note);
  return { element, set: (words, more = "", kind = "") => { text(value, words); text(note, more); element.dataset.kind = kind; } };
}

const row = (run) => h("li", { data: { row: "" } },
  runLink(run.id, short(run.id, 14)), h("span", { class: "agent" }, run.agent), run.session_id ? sessionLink(run.session_id) : h("span", {}), h("span", { class: "quiet grow" }), h("time", { class: "quiet" }));

function update(element, run) {
  const waits = run.waiting.map((one) => one.info?.tool_name ?? one.address.at(-1) ?? "").join(", ");
  text(element.children[3], short(run.error ?? (waits ? `waiting for: ${waits}` : `${count(run.steps)} events, ${run.last_agent}`), 90));
  text(element.children[4], ago(run.status === "interrupted" ? run.updated : run.started));
}

export function open(root) {
  const tiles = {
    running: tile("Running", "#/runs?status=running"), interrupted: tile("Waiting", "#/answers"), stuck: tile("Stuck", "#/runs?status=stuck"),
    begun: tile("Started"), failed: tile("Failed", "#/runs?status=failed"), tokens: tile("Tokens"),
  };
  const lists = Object.fromEntries(LISTS.map(([name, title, words]) => {
    const list = h("ul", { class: "list" }), nothing = empty(words);
    return [name, { list, nothing, section: h("section", { class: "card" }, h("h2", {}, title), list, nothing) }];
  }));
  const errors = h("ul", { class: "list" });
  const errorsCard = h("section", { class: "card", hidden: true }, h("h2", {}, "Failed in the last minute"), errors);
  const system = h("section", { class: "card" }, h("h2", {}, "System"), empty("…"));
  const problem = h("p", { class: "problem", hidden: true });
  const parts = {
    facts: h("dl", { class: "facts" }), classes: h("tbody", {}), deepest: h("ul", { class: "list plain" }), nothing: empty("All mailboxes are empty."), idle: empty("No actors."),
  };
  replace(system, h("h2", {}, "System"), parts.facts,
    h("div", { class: "columns" },
      h("div", {}, h("h3", {}, "Actors"), parts.table = h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "Class"), h("th", {}, "State"), h("th", { class: "number" }, "Count"))), parts.classes), parts.idle),
      h("div", {}, h("h3", {}, "Longest mailboxes"), parts.deepest, parts.nothing)));
  replace(root, h("h1", {}, "Now"), problem, h("div", { class: "tiles" }, Object.values(tiles).map((one) => one.element)),
    h("div", { class: "columns wide" }, Object.values(lists).map((one) => one.section)), errorsCard, system);

  function show(found) {
    problem.hidden = !found.problem;
    text(problem, found.problem);
    const { runs, more, recent } = found;
    const lost = found.lost.length;
    tiles.running.set(count(runs.running - lost, more.includes("running")), lost ? `${count(lost)} without a process` : "");
    lists.lost.section.hidden = !lost;
    tiles.interrupted.set(count(runs.interrupted, more.includes("interrupted")), "", runs.interrupted ? "warn" : "");
    tiles.stuck.set(count(runs.stuck, more.includes("stuck")), "", runs.stuck ? "bad" : "");
    if (recent) {
      tiles.begun.set(`${rate(recent.per_second)}/s`, `${count(recent.begun)} in ${span(recent.seconds)}`);
      tiles.failed.set(recent.begun ? `${(100 * recent.failed / recent.begun).toFixed(1)} %` : "–", `${count(recent.failed)} of these`, recent.failed ? "bad" : "");
      tiles.tokens.set(count(recent.input_tokens + recent.output_tokens), `${count(recent.input_tokens)} in, ${count(recent.output_tokens)} out`);
      errorsCard.hidden = !recent.errors.length;
      keyed(errors, recent.errors, (one) => one.id, (one) => h("li", { data: { row: "" } }, runLink(one.id, short(one.id, 14)), h("span", { class: "agent" }, one.agent), h("span", { class: "grow error" }, one.error)));
    }
    for (const [name] of LISTS) {
      keyed(lists[name].list, found[name], (run) => run.id, row, update);
      lists[name].nothing.hidden = found[name].length > 0;
    }
    showSystem(found.system);
  }

  function showSystem(found) {
    const slowest = found.slowest_handler;
    const facts = [
      ["name", `${found.name} (${found.state})`], ["actors", count(found.actors)], ["messages", `${count(found.handled)} handled, ${rate(found.handled_per_second)}/s`],
      ["queued", count(found.queued)], ["restarts", count(found.restarts)], ["dead letters", count(found.dead_letters)],
      ["threads", `${count(found.worker_threads)} busy, ${count(found.waiting_calls)} calls waiting`],
      ["slowest handler", slowest ? `${slowest.actor} ${slowest.handler}: ${span(slowest.seconds)}` : "–"],
    ];
    keyed(parts.facts, facts, ([name]) => name, ([name]) => h("div", {}, h("dt", {}, name), h("dd", {})), (element, [, value]) => text(element.lastChild, value));
    keyed(parts.classes, found.by_class_and_state, ([one, state]) => `${one} ${state}`,
      ([one, state]) => h("tr", {}, h("td", {}, one), h("td", {}, state), h("td", { class: "number" })), (element, [, , number]) => text(element.lastChild, count(number)));
    keyed(parts.deepest, found.deepest, ([path]) => path, ([path]) => h("li", {}, h("span", { class: "grow id" }, path), h("b", {})), (element, [, depth]) => text(element.lastChild, count(depth)));
    parts.idle.hidden = found.actors > 0;
    parts.table.hidden = found.actors === 0;
    parts.nothing.hidden = found.deepest.length > 0;
  }

  const stop = every(1000, async () => show(await get("now")), (error) => { problem.hidden = false; text(problem, error.message); });
  return { close: stop };
}

