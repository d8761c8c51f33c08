// Asking the server. All addresses are relative to the page, so that the console can be mounted anywhere.

const BASE = new URL("api/", new URL(".", location.href));

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export function address(path, parameters = {}) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") url.searchParams.append(name, one);
    }
  }
  return url;
}

async function checked(response) {
  if (response.ok) return response;
  let message = `${response.status} ${response.statusText}`;
  try {
    message = (await response.json()).error ?? message;
  } catch { /* it is no JSON: the status says enough */ }
  throw new Refused(message, response.status);
}

async function asked(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The console's server does not answer.", 0);
  }
}

export async function get(path, parameters, signal) {
  return (await checked(await asked(address(path, parameters), { signal }))).json();
}

export async function post(path, body, signal) {
  return checked(await asked(address(path), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal }));
}

export async function login(token) {
  const url = new URL("../login", BASE);
  return checked(await asked(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) }));
}

// A run's events as they happen, behind number `after`, over lost connections. `on` has a function for each kind: events, end, problem.
// A page that is not to be seen lets go of its stream, because a browser has only a few for each server, and goes on where it was.
export function follow(runId, after, on) {
  let source = null;
  let last = after;
  let isOver = false;
  const close = () => {
    source?.close();
    source = null;
  };
  const over = () => {
    isOver = true;
    close();
    document.removeEventListener("visibilitychange", seen);
  };
  const open = () => {
    source = new EventSource(address("run/events", { id: runId, after: last }));
    source.addEventListener("events", (message) => {
      last = Math.max(last, Number(message.lastEventId) || 0);
      on.events(JSON.parse(message.data));
    });
    for (const kind of ["end", "problem"]) {
      source.addEventListener(kind, (message) => {
        over();
        on[kind]?.(JSON.parse(message.data));
      });
    }
    source.addEventListener("error", (event) => {
      if (event.target.readyState !== EventSource.CLOSED || isOver || event.target !== source) return;
      over();
      on.problem?.({ error: "The event stream of this run cannot be opened." });
    });
  };
  const seen = () => {
    if (document.hidden) close();
    else if (!source && !isOver) open();
  };
  document.addEventListener("visibilitychange", seen);
  seen();
  return over;
}

// The answer to a message is a stream of the same form.
export async function stream(path, body, on, signal) {
  const response = await post(path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    rest += value;
    const pieces = rest.split("\n\n");
    rest = pieces.pop();
    for (const piece of pieces) {
      const fields = Object.fromEntries(piece.split("\n").filter((line) => !line.startsWith(":")).map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      if (fields.event) on[fields.event]?.(JSON.parse(fields.data));
    }
  }
}

// Ask again and again while the page is to be seen, and never twice at once.
export function every(milliseconds, work, failed) {
  let timer = 0;
  let closed = false;
  const turn = async () => {
    if (!document.hidden) {
      try {
        await work();
      } catch (error) {
        if (!closed) failed?.(error);
      }
    }
    if (!closed) timer = setTimeout(turn, milliseconds);
  };
  const seen = () => {
    if (!document.hidden && !closed) {
      clearTimeout(timer);
      timer = setTimeout(turn, 0);
    }
  };
  document.addEventListener("visibilitychange", seen);
  turn();
  return () => {
    closed = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
