/**
 * The script of the reference page: sends requests, reads event streams and opens WebSockets, all to this gateway.
 *
 * The script is a string, because the page's content security policy admits the script by its hash. Without the script,
 * everything on the page except the forms works.
 */
export const script = `"use strict";
const most = 20000;
const key = document.getElementById("key");
const base = document.body.dataset.base;
const running = new WeakMap();

const target = (form) => {
  const data = new FormData(form);
  const query = new URLSearchParams();
  let path = form.dataset.path;
  for (const input of form.querySelectorAll("[data-in]")) {
    const value = String(data.get(input.name) ?? "");
    if (input.dataset.in === "path") path = path.replace("{" + input.name + "}", encodeURIComponent(value));
    else if (value !== "") query.append(input.name, value);
  }
  const text = query.toString();
  return base + path + (text === "" ? "" : "?" + text);
};

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
};

const show = (form, state, text, isBad) => {
  const output = form.querySelector("output");
  output.hidden = false;
  const line = document.createElement("strong");
  line.className = isBad ? "bad" : "good";
  line.textContent = state;
  const body = document.createElement("pre");
  body.tabIndex = 0;
  body.textContent = text.length > most ? text.slice(0, most) + "\\n… " + (text.length - most) + " more characters" : text;
  output.replaceChildren(line, body);
};

const button = (form, text) => {
  form.querySelector("button").textContent = text;
};

const send = async (form) => {
  const ended = new AbortController();
  running.set(form, () => ended.abort());
  const body = form.elements.namedItem("body");
  const began = performance.now();
  try {
    const response = await fetch(target(form), {
      method: form.dataset.method,
      signal: ended.signal,
      headers: {
        ...(body === null ? {} : { "content-type": "application/json" }),
        ...(key.value === "" ? {} : { authorization: "Bearer " + key.value })
      },
      ...(body === null ? {} : { body: body.value })
    });
    const state = () => response.status + " " + response.statusText + ", " + Math.round(performance.now() - began) + " ms";
    const isEvents = (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
    if (!isEvents) return show(form, state(), pretty(await response.text()), !response.ok);
    button(form, "Stop");
    let text = "";
    show(form, state(), "Waiting for the first event …", false);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text = (text + value).slice(-most);
      show(form, state(), text, false);
    }
  } catch (error) {
    if (!ended.signal.aborted) show(form, "No response", String(error.message ?? error), true);
  } finally {
    running.delete(form);
    button(form, "Send");
  }
};

const open = (form) => {
  const url = new URL(target(form), location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const socket = new WebSocket(url);
  let text = "";
  const add = (state, line, isBad) => {
    text = (text + line).slice(-most);
    show(form, state, text, isBad);
  };
  running.set(form, () => socket.close(1000));
  button(form, "Close");
  socket.onopen = () => {
    const message = form.elements.namedItem("message").value;
    socket.send(message);
    add("open", "> " + message + "\\n", false);
  };
  socket.onmessage = ({ data }) => add("open", "< " + data + "\\n", false);
  socket.onclose = ({ code, reason }) => {
    running.delete(form);
    button(form, "Open");
    add("closed: " + code + " " + reason, "", code !== 1000);
  };
};

addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  if (form.dataset.path === undefined) return;
  const stop = running.get(form);
  if (stop !== undefined) stop();
  else if (form.dataset.socket === "yes") open(form);
  else void send(form);
});

addEventListener("change", ({ target }) => {
  if (target.dataset.examples === undefined) return;
  target.form.elements.namedItem("body").value = target.value;
});

const reveal = () => {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = found; at !== null && at !== undefined; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  found?.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();
`
