/** The script and the style of the API reference. */

/**
 * The script of the reference: sends requests, reads event streams and opens WebSockets, all to this gateway, searches, and
 * writes each request in three languages.
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

const element = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text }, more);

const show = (form, state, text, isBad, headers) => {
  const output = form.querySelector("output");
  output.hidden = false;
  const shown = text.length > most ? text.slice(0, most) + "\\n… " + (text.length - most) + " more characters" : text;
  const parts = [element("strong", state, { className: isBad ? "bad" : "good" }), element("pre", shown, { tabIndex: 0 })];
  if (headers !== undefined) {
    const list = document.createElement("details");
    const lines = [...headers].map((pair) => pair.join(": "));
    list.open = output.querySelector("details")?.open ?? false;
    list.append(element("summary", lines.length + " response headers"), element("pre", lines.join("\\n"), { tabIndex: 0 }));
    parts.push(list);
  }
  output.replaceChildren(...parts);
};

const urlFor = (form) => {
  const url = new URL(target(form), location.href);
  if (form.dataset.kind === "socket") url.protocol = url.protocol.replace("http", "ws");
  return url.href;
};

const inShell = (text) => "'" + text.replaceAll("'", "'\\\\''") + "'";
const inPython = (json) =>
  json.replace(/"(?:[^"\\\\]|\\\\.)*"|\\b(?:true|false|null)\\b/g, (token) =>
    ({ true: "True", false: "False", null: "None" })[token] ?? token);
const indented = (text, by) => text.replaceAll("\\n", "\\n" + by);

const languages = {
  curl: ({ body, events, keyed, method, message, url }) =>
    message !== undefined
      ? "npx wscat --wait 60 \\\\\\n  --execute " + inShell(message) + " \\\\\\n  --connect " + inShell(url)
      : ["curl" + (events ? " --no-buffer" : "") + (method === "GET" ? "" : " --request " + method) + " " + inShell(url),
          ...(keyed ? ['--header "authorization: Bearer $TRIGATE_KEY"'] : []),
          ...(body === undefined ? [] : ["--header 'content-type: application/json'", "--data " + inShell(body)])
        ].join(" \\\\\\n  "),
  Python: ({ body, events, keyed, method, message, url }) => {
    const address = JSON.stringify(url);
    const auth = '{"authorization": "Bearer " + os.environ["TRIGATE_KEY"]}';
    const imported = keyed ? "import os\\n\\n" : "";
    if (message !== undefined) {
      return imported + "from websockets.sync.client import connect\\n\\nwith connect(" + address +
        (keyed ? ", additional_headers=" + auth : "") + ") as socket:\\n    socket.send(" + JSON.stringify(message) +
        ")\\n    for frame in socket:\\n        print(frame)";
    }
    const parts = [
      address,
      ...(body === undefined ? [] : ["json=" + indented(inPython(body), "    ")]),
      ...(keyed ? ["headers=" + auth] : []),
      ...(events ? ["stream=True"] : [])
    ];
    const call = "requests." + method.toLowerCase() + "(\\n    " + parts.join(",\\n    ") + ",\\n)";
    return imported + "import requests\\n\\nresponse = " + call + "\\n" + (events
      ? "for line in response.iter_lines(decode_unicode=True):\\n    print(line)"
      : "print(response.status_code, response.text)");
  },
  TypeScript: ({ body, events, keyed, method, message, url }) => {
    const address = JSON.stringify(url);
    if (message !== undefined) {
      return "const socket = new WebSocket(" + address + ")\\nsocket.onopen = () => socket.send(JSON.stringify(" + message +
        "))\\nsocket.onmessage = ({ data }) => console.log(data)";
    }
    const headers = [
      ...(body === undefined ? [] : ['"content-type": "application/json"']),
      ...(keyed ? ["authorization: \`Bearer \${process.env.TRIGATE_KEY}\`"] : [])
    ];
    const options = [
      ...(method === "GET" ? [] : ['method: "' + method + '"']),
      ...(headers.length === 0 ? [] : ["headers: { " + headers.join(", ") + " }"]),
      ...(body === undefined ? [] : ["body: JSON.stringify(" + indented(body, "  ") + ")"])
    ];
    return "const response = await fetch(" + address +
      (options.length === 0 ? "" : ", {\\n  " + options.join(",\\n  ") + "\\n}") + ")\\n" + (events
      ? "for await (const text of response.body!.pipeThrough(new TextDecoderStream())) console.log(text)"
      : "console.log(response.status, await response.text())");
  }
};

let language = "curl";

const sample = (form) => {
  const field = form.querySelector("textarea");
  const { kind, method } = form.dataset;
  form.querySelector(".sample code").textContent = languages[language]({
    method,
    url: urlFor(form),
    events: kind === "events",
    keyed: document.querySelector("main").dataset.keys === "yes" || key.value !== "",
    ...(kind === "socket" ? { message: field.value } : field === null ? {} : { body: field.value })
  });
  form.querySelector("[data-copy]").textContent = "Copy";
  for (const each of form.querySelectorAll("[data-language]")) each.ariaPressed = String(each.dataset.language === language);
};

const copy = async (button, code) => {
  getSelection().selectAllChildren(code);
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Selected";
  }
};

addEventListener("click", ({ target }) => {
  const form = target.form;
  if (target.dataset?.language !== undefined) {
    language = target.dataset.language;
    sample(form);
  } else if (target.dataset?.copy !== undefined) void copy(target, form.querySelector(".sample code"));
});

addEventListener("input", ({ target }) => {
  if (target.form?.dataset.path !== undefined) sample(target.form);
});

addEventListener("toggle", ({ target }) => {
  const form = target.open ? target.querySelector(":scope > form") : null;
  if (form !== null) sample(form);
}, true);

const search = document.getElementById("search");
if (matchMedia("(max-width:56rem)").matches) for (const group of document.querySelectorAll("nav details")) group.open = false;
const groups = [...document.querySelectorAll("nav details")].map((group) => ({
  group,
  wasOpen: group.open,
  links: [...group.querySelectorAll("a")].map((link) => ({ link, text: (group.firstChild.textContent + " " + link.textContent + " " + link.title).toLowerCase() }))
}));
search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\\s+/).filter((word) => word !== "");
  let found = 0;
  for (const { group, links, wasOpen } of groups) {
    let some = 0;
    for (const { link, text } of links) {
      link.hidden = !words.every((word) => text.includes(word));
      if (!link.hidden) some++;
    }
    found += some;
    group.hidden = some === 0;
    group.open = words.length > 0 || wasOpen;
  }
  document.getElementById("found").textContent = words.length === 0 ? "" : found === 0 ? "Nothing found" : found + " found";
});
search.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  document.querySelector("nav details:not([hidden]) a:not([hidden])")?.click();
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  event.preventDefault();
  search.focus();
});

const button = (form, text) => {
  form.querySelector("button[type=submit]").textContent = text;
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
    if (!isEvents) return show(form, state(), pretty(await response.text()), !response.ok, response.headers);
    button(form, "Stop");
    let text = "";
    show(form, state(), "Waiting for the first event …", false, response.headers);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text = (text + value).slice(-most);
      show(form, state(), text, false, response.headers);
    }
  } catch (error) {
    if (!ended.signal.aborted) show(form, "No response", String(error.message ?? error), true);
  } finally {
    running.delete(form);
    button(form, "Send");
  }
};

const open = (form) => {
  const socket = new WebSocket(urlFor(form));
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
  else if (form.dataset.kind === "socket") open(form);
  else void send(form);
});

addEventListener("change", ({ target }) => {
  if (target.dataset.examples === undefined) return;
  target.form.elements.namedItem("body").value = target.value;
  sample(target.form);
});

const reveal = () => {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = found; at !== null && at !== undefined; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  found?.scrollIntoView();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === location.hash && link.hash !== "") {
      link.ariaCurrent = "true";
      link.closest("details")?.setAttribute("open", "");
      link.scrollIntoView({ block: "nearest" });
    } else link.ariaCurrent = null;
  }
};
addEventListener("hashchange", reveal);
reveal();
`

/** The style of the page: the colours of the console. Collapsed parts of the page are laid out when they are opened. */
export const style = `
:root{color-scheme:light dark;--back:light-dark(#f4f6f8,#0c1013);--card:light-dark(#fff,#14191d);--text:light-dark(#141a1e,#e6ebee);
--soft:light-dark(#56636d,#97a4ae);--line:light-dark(#e3e8ec,#232b31);--accent:light-dark(#0f766e,#2dd4bf);
--good:light-dark(#0a7547,#34d399);--bad:light-dark(#b42318,#f97066);font:14px/1.5 Inter,system-ui,sans-serif;scroll-padding-top:1rem}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--text);display:grid;grid-template-columns:19rem minmax(0,1fr);align-items:start}
[hidden]{display:none!important}
a{color:var(--accent)}nav{position:sticky;top:0;height:100vh;overflow-y:auto;padding:.8rem;border-right:1px solid var(--line);background:var(--card)}
nav>strong{display:flex;align-items:center;gap:.45rem;color:var(--accent);font-size:1.05rem;margin-bottom:.6rem}nav img{width:1.2rem;height:1.2rem}
nav details{margin:.2rem 0;border:0;background:none}nav details>*{margin:0}nav summary{padding:.25rem .4rem;font-weight:600}
nav a{display:block;padding:.15rem .4rem;border-radius:.35rem;text-decoration:none;color:var(--text);overflow-wrap:break-word}nav>a{margin-top:.6rem}
nav details a{display:flex;gap:.3rem;align-items:baseline;padding-left:1.3rem}nav a span{min-width:0;overflow-wrap:anywhere}nav a:hover{background:var(--back)}nav a[aria-current]{background:var(--accent);color:var(--card)}
nav a b{flex:0 0 2.4rem;color:var(--accent);font-size:.72rem}nav a[aria-current] b{color:inherit}
kbd{border:1px solid var(--line);border-radius:.25rem;padding:0 .35rem;font:.8rem ui-monospace,monospace;justify-self:start}
nav label{display:block}nav input{display:block;margin-top:.2rem;width:100%}#found{margin:.3rem .4rem;color:var(--soft);min-height:1.3em}
main{max-width:88rem;width:100%;margin:0 auto;padding:1.2rem}h1,h2{margin:1.6rem 0 .5rem;letter-spacing:-.01em}h1{margin-top:0}h3{margin:1rem 0 .3rem;font-size:1rem}
main>p{max-width:48rem}main>form{max-width:34rem}details{margin:.4rem 0;border:1px solid var(--line);border-radius:.5rem;background:var(--card)}details>*{margin-left:1rem;margin-right:1rem}
summary{cursor:pointer;margin:0;padding:.5rem .8rem;overflow-wrap:anywhere}summary b{display:inline-block;min-width:3.4rem;color:var(--accent)}
small{color:var(--soft)}.operation>p{max-width:56rem}.operation>details{margin:.25rem 1rem}.operation>:last-child{margin-bottom:1rem}
code,pre,textarea{font:.85rem/1.5 ui-monospace,monospace}pre{overflow:auto;max-height:30rem;padding:.6rem;margin:.6rem 0;background:var(--back);border-radius:.4rem}
pre i{color:var(--soft);font-style:normal}.good{color:var(--good)}.bad{color:var(--bad)}.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:500}form{display:grid;grid-template-columns:minmax(0,1fr);gap:1rem;margin-bottom:1rem}
form>div:not(.sample){display:grid;grid-template-columns:minmax(0,1fr);gap:.6rem;justify-items:start;align-content:start}
main label{display:grid;grid-template-columns:minmax(0,1fr);gap:.2rem;width:100%;color:var(--soft)}
input,select,textarea,button{font:inherit;color:var(--text);background:var(--back);border:1px solid var(--line);border-radius:.4rem;padding:.35rem .6rem;max-width:100%}
textarea{width:100%;font:.85rem/1.5 ui-monospace,monospace}button{cursor:pointer}button[type=submit]{background:var(--accent);color:var(--card);font-weight:600}output{display:block;width:100%}
.sample{min-width:0;border:1px solid var(--line);border-radius:.5rem;align-self:start;overflow:hidden}.sample pre{margin:0;border-radius:0;padding:.8rem;max-height:26rem}
.bar{display:flex;flex-wrap:wrap;gap:.2rem;padding:.35rem;border-bottom:1px solid var(--line)}.bar button{border-color:transparent;background:none;color:var(--soft);padding:.2rem .5rem}
.bar button[aria-pressed=true]{background:var(--back);color:var(--text);font-weight:600}[data-copy]{margin-left:auto}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
@media(min-width:80rem){form:has(.sample){grid-template-columns:minmax(0,1fr) minmax(0,1fr)}}
@media(max-width:56rem){body{display:block}nav{position:static;height:auto;max-height:45vh;border:0;border-bottom:1px solid var(--line)}main{padding:.8rem}}`
