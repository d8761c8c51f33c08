// The console: which page is shown, the keys, dark and light.

import { h, notice, replace } from "./dom.js";
import { get, login } from "./net.js";
import * as now from "./now.js";
import * as runs from "./runs.js";
import * as run from "./run.js";
import * as answers from "./answers.js";
import * as sessions from "./sessions.js";
import * as session from "./session.js";
import * as attempts from "./try.js";

const PAGES = [
  { name: "now", title: "Now", page: now },
  { name: "runs", title: "Runs", page: runs },
  { name: "answers", title: "Waiting", page: answers },
  { name: "sessions", title: "Sessions", page: sessions },
  { name: "try", title: "Try", page: attempts },
];
const OTHERS = { run: { page: run, under: "runs" }, session: { page: session, under: "sessions" } };
const main = document.getElementById("main");
let open = null;

function show() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = (path || "now").split("/");
  const known = PAGES.find((one) => one.name === name);
  const chosen = known ?? OTHERS[name];
  if (!chosen) {
    location.hash = "#/now";
    return;
  }
  open?.close?.();
  replace(main);
  document.querySelectorAll("#nav a").forEach((link) => {
    if (link.dataset.name === (known?.name ?? chosen.under)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  let id = "";
  try {
    id = decodeURIComponent(rest.join("/"));
  } catch {
    notice("This address is not a valid address of the console.", true);
  }
  document.title = `${known?.title ?? id} – offbook console`;
  open = chosen.page.open(main, { id, query: new URLSearchParams(query ?? "") }) ?? null;
  window.scrollTo(0, 0);
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function otherTheme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = dark ? "light" : "dark";
  localStorage.setItem("offbook.theme", theme);
  setTheme(theme);
}

const KEYS = [
  ["1 – 5", "Now, Runs, Waiting, Sessions, Try"],
  ["j, k", "next or previous row; Enter opens it"],
  ["/", "focus the first field of the page"],
  ["[, ]", "previous or next view of a run"],
  ["a, d", "approve or deny the focused item (Waiting)"],
  ["Enter", "send the message; Shift+Enter starts a new line"],
  ["t", "dark or light"],
  ["Esc", "leave a field; go back"],
];

function help() {
  const dialog = h("dialog", { class: "help" },
    h("h2", {}, "Keyboard shortcuts"),
    h("dl", {}, KEYS.map(([keys, what]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, what)])),
    h("div", { class: "row end" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function move(step) {
  const rows = [...main.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step))];
  (next.matches("a, button, [tabindex]") ? next : next.querySelector("a, button, [tabindex]"))?.focus();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input, textarea, select");
  if (event.key === "Escape" && typing) {
    event.target.blur();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const page = PAGES[Number(event.key) - 1];
  if (page) location.hash = `#/${page.name}`;
  else if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
  else if (event.key === "/") main.querySelector("input, select, textarea")?.focus();
  else if (event.key === "t") otherTheme();
  else if (event.key === "?") help();
  else if (event.key === "Escape") history.back();
  else if (!open?.key?.(event)) return;
  event.preventDefault();
});

function who(name) {
  const field = document.getElementById("who");
  if (name) {
    field.value = name;
    field.disabled = true;
    return;
  }
  field.value = localStorage.getItem("offbook.name") ?? "";
  field.addEventListener("change", () => localStorage.setItem("offbook.name", field.value.trim()));
}

async function start() {
  addEventListener("hashchange", () => { if (location.hash.startsWith("#token=")) location.reload(); });
  const token = /^#token=(.*)$/.exec(location.hash)?.[1];
  if (token) history.replaceState(null, "", location.pathname + location.search);  // the token stays neither in sight nor in the history
  setTheme(localStorage.getItem("offbook.theme"));
  document.getElementById("theme").addEventListener("click", otherTheme);
  document.getElementById("help").addEventListener("click", help);
  replace(document.getElementById("nav"), PAGES.map((page) => h("a", { href: `#/${page.name}`, data: { name: page.name } }, page.title)));
  try {
    if (token) await login(decodeURIComponent(token));
    const { name } = await get("me");
    begin(name);
  } catch (error) {
    if (error.status === 401) {
      askToken();
      return;
    }
    begin(null);
    notice(error.message, true);
  }
}

function begin(name) {
  who(name);
  addEventListener("hashchange", show);
  show();
}

// The token goes to the server in the body of a request: what stands in addresses comes into the logs of servers.
function askToken() {
  const field = h("input", { id: "token", type: "password", name: "token", "aria-label": "The token of this console", autocomplete: "current-password", required: true });
  const form = h("form", { class: "login" }, h("label", { for: "token" }, "The token of this console"), " ", field, " ", h("button", { type: "submit" }, "Open"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await login(field.value.trim());
      begin((await get("me")).name);
      notice("");
    } catch (error) {
      notice(error.status === 401 ? "This is not the token of this console." : error.message, true);
    }
  });
  replace(main, form);
  field.focus();
}

start();
