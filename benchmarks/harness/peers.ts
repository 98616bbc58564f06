/** Starts what is measured: the gateway, what a user would take or write instead, and the upstream behind all of them. */
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { has, root } from "./machine.ts"
import { bundles, nameOfOther } from "./plan.ts"
import { scratch, serve, type Server, start } from "./processes.ts"

/** The program as it is published: one file. Beside that of another checkout, both are bundled in one way. */
export const program = bundles === undefined
  ? path.join(root, "packages/trigate/build/dist/trigate.js")
  : path.join(bundles, "ours/dist/trigate.js")

/** The program from its sources: a profile names the file of each function. */
const sources = path.join(root, "packages/trigate/src/trigate.ts")

const script = (file: string) => path.join(root, "benchmarks/peers", file)

const node = (
  name: string,
  core: "peer" | "load",
  file: string,
  args: ReadonlyArray<string> = [],
  env: { readonly [name: string]: string } = {}
): Promise<Server> => serve({ name, core, program: process.execPath, args: [script(file), ...args], env })

/** The upstream, beside the load generator. */
export const upstream = (): Promise<Server> => node("upstream", "load", "upstream.ts")

/** A venue that counts weight, beside the load generator. */
export const venue = (): Promise<Server> => node("venue", "load", "venue.ts")

interface More {
  readonly name: string
  readonly env: { readonly [name: string]: string }
  /** Of Node. */
  readonly flags?: ReadonlyArray<string>
}

/** The gateway with rate limits that are on but never reached, and without a log; `more` says what else is on. */
export const gateway = (
  { url }: Server,
  more: More = { name: "trigate", env: {} },
  file = program
): Promise<Server> =>
  serve({
    name: more.name,
    core: "peer",
    program: process.execPath,
    args: [...(more.flags ?? []), file, "serve"],
    env: {
      TRIGATE_PORT: "0",
      // an endpoint key, as a node provider has it: what is quoted of it has to be looked for
      TRIGATE_LAYER2_URL: `${url}/0123456789abcdef0123456789abcdef`,
      TRIGATE_TRADING_API_URL: url,
      TRIGATE_ACCESS_LOG: "off",
      TRIGATE_LAYER2_RPS: "1000000",
      TRIGATE_TRADING_API_WEIGHT: "1000000000",
      ...more.env
    }
  })

/** The program without upstreams: the sandbox. */
export const sandbox = (): Promise<Server> =>
  serve({
    name: "sandbox",
    core: "peer",
    program: process.execPath,
    args: [program, "serve"],
    env: { TRIGATE_PORT: "0", TRIGATE_ACCESS_LOG: "off" }
  })

/** The gateway from its sources, which leaves a profile of its processor time in a folder when it stops. */
export const profiled = (upstream: Server, folder: string): Promise<Server> =>
  gateway(upstream, { name: "trigate, profiled", env: {}, flags: ["--cpu-prof", `--cpu-prof-dir=${folder}`] }, sources)

/** The same of the other checkout; none where there is no other. */
export const other = async (
  upstream: Server,
  more: More = { name: "trigate", env: {} }
): Promise<ReadonlyArray<Server>> =>
  bundles === undefined
    ? []
    : [await gateway(upstream, { ...more, name: nameOfOther(more.name) }, path.join(bundles, "theirs/dist/trigate.js"))]

/** The proxy that pipes, by hand over `node:http` and undici. */
export const barePipe = ({ url }: Server, env: { readonly [name: string]: string } = {}): Promise<Server> =>
  node("bare proxy, pipes", "peer", "bare-pipe.ts", [url], env)

/** The proxy that forwards chunks from undici's own events. */
export const bareDispatch = ({ url }: Server): Promise<Server> =>
  node("bare proxy, dispatches", "peer", "bare-dispatch.ts", [url])

/** A venue with a WebSocket and the callers of a relay in front of it. */
export const streamCallers = (): Promise<Server> => node("callers", "load", "stream-callers.ts")

/** The relay over `ws` that writes each frame to each client. */
export const bareStreamRelay = ({ url }: Server, env: { readonly [name: string]: string } = {}): Promise<Server> =>
  node("bare ws relay", "peer", "bare-stream-relay.ts", [url], env)

/** What the gateway checks of a JSON-RPC read, written by hand. */
export const plainNode = ({ url }: Server): Promise<Server> =>
  node("plain Node, same checks", "peer", "plain-node.ts", [url])

export const fastifyProxy = ({ url }: Server): Promise<Server> =>
  node("@fastify/http-proxy", "peer", "fastify-proxy.ts", [url])

/** A route that answers with a constant text. */
export const fastifyConstant = (text: string): Promise<Server> =>
  node("Fastify constant", "peer", "fastify-constant.ts", [text])

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

const nginxConfig = (port: number, origin: string) => `
worker_processes 1;
daemon off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  keepalive_requests 100000000;
  upstream behind { server ${origin.replace("http://", "")}; keepalive 256; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`

/** Redis, for replicas that share; nothing where it is not installed. */
export const redis = async (): Promise<string | undefined> => {
  if (!has("redis-server")) return undefined
  const port = await freePort()
  start({
    name: "Redis",
    program: "redis-server",
    core: "load",
    args: ["--port", String(port), "--bind", "127.0.0.1", "--dir", scratch(), "--save", "", "--appendonly", "no"]
  })
  while (!(await answers(port))) await new Promise((resolve) => setTimeout(resolve, 20))
  return `redis://127.0.0.1:${port}`
}

/** The hostile caller: one kind of request at the replicas, from an address of its own. */
export const attacker = (kind: string, replicas: ReadonlyArray<Server>): Promise<Server> =>
  serve({
    name: kind,
    core: "load",
    program: process.execPath,
    args: [path.join(root, "benchmarks/harness/attacker.ts"), kind, ...replicas.map(({ url }) => url)]
  })

/** Upstreams that do what they like. */
export const hostileUpstream = (): Promise<Server> => node("hostile upstream", "load", "hostile-upstream.ts")

/** A hostile caller of one gateway, whose venue it can make close its sockets. */
export const streamAttacker = (kind: string, { url }: Server, upstream?: Server): Promise<Server> =>
  serve({
    name: kind,
    core: "load",
    program: process.execPath,
    args: [path.join(root, "benchmarks/harness/stream-attacker.ts"), kind, url, upstream?.url ?? ""]
  })

/** The gateway with its default limits in front of hostile upstreams. */
export const besideHostile = ({ url }: Server): Promise<Server> =>
  serve({
    name: "trigate",
    core: "peer",
    program: process.execPath,
    args: [program, "serve"],
    env: {
      TRIGATE_PORT: "0",
      TRIGATE_TRADING_API_URL: url,
      TRIGATE_TRADING_NODE_URL: `${url}/node`,
      TRIGATE_LAYER2_URL: `${url}/lying`,
      TRIGATE_TOKEN_CHAIN_URL: `${url}/ton`,
      TRIGATE_ACCESS_LOG: "off",
      TRIGATE_MAX_CONNECTIONS: "16384"
    }
  })

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1")
    socket.on("connect", () => {
      socket.destroy()
      resolve(true)
    })
    socket.on("error", () => resolve(false))
  })

/** nginx with one worker and connections that stay open; nothing where it is not installed. */
export const nginx = async ({ url }: Server): Promise<Server | undefined> => {
  if (!has("nginx")) return undefined
  const folder = scratch()
  // its worker gives up the rights of root and still has to write here
  fs.chmodSync(folder, 0o777)
  const port = await freePort()
  fs.writeFileSync(path.join(folder, "nginx.conf"), nginxConfig(port, url))
  const { pid } = start({
    name: "nginx",
    program: "nginx",
    core: "peer",
    args: ["-p", folder, "-c", "nginx.conf", "-e", "stderr"],
    env: { PATH: `${process.env["PATH"]}:/usr/sbin` }
  })
  while (!(await answers(port))) await new Promise((resolve) => setTimeout(resolve, 20))
  return { name: "nginx proxy_pass", url: `http://127.0.0.1:${port}`, pid: pid ?? 0 }
}

/** What stands in the results where nginx is missing. */
export const withoutNginx = "nginx is not installed: no row beside it"
