// All that waits for an answer, the one that waits longest first; of very many, the latest 500 runs.

import { attempt, h, keyed, replace, text } from "./dom.js";
import { every, get } from "./net.js";
import { ago, count, empty } from "./forms.js";
import { answerCard } from "./answerform.js";

export function open(root) {
  const list = h("div", { class: "cards" });
  const nothing = empty("No runs wait for an answer.");
  const number = h("span", { class: "quiet" });
  const problem = h("p", { class: "problem", hidden: true });
  const more = h("button", { type: "button", hidden: true }, "More");
  let own = null;
  let limit = 100;
  replace(root, h("div", { class: "row" }, h("h1", { class: "grow" }, "Waiting"), number), problem, nothing, list, more);
  more.addEventListener("click", () => attempt(more, () => { limit = Math.min(500, limit + 100); return load(); }));

  async function load() {
    own ??= (await get("agents")).agent;
    const { runs, more: hasMore } = await get("pending", { limit });
    problem.hidden = true;
    const items = runs.flatMap((run) => run.waiting.map((context) => ({ run, context }))).reverse();
    more.hidden = !hasMore || limit >= 500;
    nothing.hidden = items.length > 0;
    text(number, items.length ? `${count(items.length, hasMore)} waiting` : "");
    keyed(list, items, ({ run, context }) => `${run.id} ${context.id}`, ({ run, context }) => answerCard(run, context, load, { canGoOn: run.agent === own }),
      (element, { run }) => text(element.querySelector("header time"), ago(run.updated)));
  }

  const stop = every(2000, load, (error) => { problem.hidden = false; text(problem, error.message); });
  return {
    close: stop,
    key(event) {
      const card = document.activeElement?.closest?.("[data-interrupt]");
      const act = { a: "approve", d: "deny" }[event.key];
      if (!card || !act) return false;
      card.querySelector(`[data-act=${act}]`)?.click();
      return true;
    },
  };
}
