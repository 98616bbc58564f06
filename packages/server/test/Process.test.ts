import { assert, describe, it } from "@effect/vitest"
import { catalogDate } from "@trigate/domain/actions/Action"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { gateway, get, post } from "@trigate/testing/Gateway"
import { freePort, type GatewayProcess, gatewayProcess, program } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Fs from "node:fs"
import { bigBlocks, bodyOf } from "./bodies.ts"
import { connection, heldUpstream } from "./connections.ts"
import { folder } from "./keyFile.ts"

const receiptCall = `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x${"ab".repeat(32)}"]}`

const oneLine = /^trigate: [^\n]+\n$/u

const ended = (running: GatewayProcess) => Effect.promise(() => running.ended)

/** A signal ends a gateway that serves nobody, also under a connection that is kept open. */
const endsIdle = Effect.fnUntraced(function*(running: GatewayProcess, name: "SIGTERM" | "SIGINT") {
  const call = yield* connection
  assert.strictEqual((yield* call(`${running.url}/health/ready`)).status, 200)
  assert.strictEqual((yield* call(`${running.url}/l2`, receiptCall)).status, 200)
  running.signal(name)
  assert.strictEqual(yield* ended(running), 0)
})

// a start takes most of a second of processor time: what one process can show is one test
describe("the start", () => {
  it.live("prints where it listens, what is behind, how long it took, and no request; SIGTERM ends it idle", () =>
    Effect.gen(function*() {
      // a setting that is empty is unset
      const empty = { TRIGATE_SIGNERS: "", TRIGATE_STRICT: "", TRIGATE_LAYER2_URL: "" }
      const running = yield* gatewayProcess({ TRIGATE_ACCESS_LOG: "off", ...empty })
      const lines = running.printed().split("\n")
      const { cpu, elapsed, url = "" } =
        /^Trigate listens on (?<url>\S+) \(sandbox\), ready after (?<elapsed>\d+) ms \((?<cpu>\d+) ms of processor time\)$/u
          .exec(lines[0] ?? "")?.groups ?? {}
      assert.strictEqual(url, running.url)
      assert.deepStrictEqual(lines.slice(1), [
        "  serving the sandbox, because no TRIGATE_*_URL is set: nothing here is real",
        `  actions (catalog of ${catalogDate}): every known type, including orders (to relay fewer types, set TRIGATE_RELAY_ACTIONS)`,
        `  reference: ${url}/docs  contract: ${url}/openapi.json  state: ${url}/health/ready`,
        `  venue: ${url}/exchange, ${url}/info, ${url.replace("http", "ws")}/ws  control: ${url}/admin/sandbox`,
        `  console: ${url}/`,
        ""
      ])
      assert.isAbove(Number(elapsed), 0)
      assert.isAbove(Number(cpu), 0)
      yield* endsIdle(running, "SIGTERM")
      assert.deepStrictEqual(running.printed().split("\n"), lines)
    }))

  it.live("tells what is behind by chain, and no address; SIGINT ends it idle", () =>
    Effect.gen(function*() {
      const running = yield* gatewayProcess({
        TRIGATE_ACCESS_LOG: "off",
        TRIGATE_NETWORK: "testnet",
        TRIGATE_HOST: "0.0.0.0",
        TRIGATE_CALLERS: "open",
        TRIGATE_RELAY_ACTIONS: "order,fromTheFuture",
        TRIGATE_TRADING_API_URL: "http://127.0.0.1:9/one,http://127.0.0.1:9/two",
        TRIGATE_LAYER2_URL: "http://127.0.0.1:9/three",
        TRIGATE_LAYER2_BATCH: "20",
        TRIGATE_TRADING_NODE_RPS: "25"
      })
      const [first, ...rest] = running.printed().split("\n")
      assert.match(first ?? "", /\(testnet\)/u)
      assert.deepStrictEqual(rest.slice(0, 7), [
        "  trading: trading-api x2, trading-node x0",
        "  tokens: not configured",
        "  layer2: layer2 x1",
        "  warning: TRIGATE_LAYER2_BATCH has no effect: reads of different callers are no longer sent in one batch",
        `  actions (catalog of ${catalogDate}): order, fromTheFuture (unknown type) (TRIGATE_RELAY_ACTIONS)`,
        "  warning: every client that can reach 0.0.0.0 can have orders relayed; set TRIGATE_CALLERS to `keys`, or list your signers in " +
        "TRIGATE_SIGNERS",
        "  action log: in memory, lost when this process ends (set TRIGATE_DATABASE_URL to store it)"
      ])
      yield* endsIdle(running, "SIGINT")
    }))
})

describe("a wrong setting", () => {
  it.live("stops the start with one line that names it and not its value", () =>
    Effect.gen(function*() {
      const environment = { TRIGATE_PORT: "0", TRIGATE_TRADING_NODE_URL: "https://node.example/s3cr3t?key=s3cr3t" }
      const { code, stderr, stdout } = yield* program([], environment)
      assert.deepStrictEqual({ code, stdout }, { code: 2, stdout: "" })
      assert.match(stderr, oneLine)
      assert.isTrue(stderr.startsWith("trigate: TRIGATE_TRADING_NODE_URL is not valid: expected "), stderr)
      assert.notInclude(stderr, "s3cr3t")
    }))
})

describe("an address that cannot be listened on", () => {
  it.live("is told in one line when the port is taken; whoever has it is not disturbed", () =>
    Effect.gen(function*() {
      const first = yield* gateway({})
      const port = new URL(first.url).port
      const { code, stderr, stdout } = yield* program([], { TRIGATE_PORT: port })
      assert.deepStrictEqual({ code, stdout }, { code: 1, stdout: "" })
      assert.strictEqual(stderr, `trigate: 127.0.0.1:${port} is in use; set --port or TRIGATE_PORT to another port\n`)
      assert.strictEqual((yield* get(`${first.url}/health/ready`)).status, 200)
    }))

  it.live("is reported before a store is opened, which another gateway may be using", () =>
    Effect.gen(function*() {
      const { port } = new URL((yield* gateway({})).url)
      const file = `${yield* folder}/gateway.sqlite`
      const live = { TRIGATE_LAYER2_URL: "http://127.0.0.1:9/layer2", TRIGATE_DATABASE_URL: file }
      for (const [name, flag] of [["TRIGATE_PORT", "--port"], ["TRIGATE_ADMIN_PORT", "--admin-port"]] as const) {
        const { message } = yield* Effect.flip(Effect.scoped(gateway({ ...live, [name]: port })))
        assert.strictEqual(message, `127.0.0.1:${port} is in use; set ${flag} or ${name} to another port`)
      }
      assert.isFalse(Fs.existsSync(file))
    }))

  it.live("is reported if it is taken while the gateway starts, and nothing of the gateway is left", () =>
    Effect.gen(function*() {
      const port = String(yield* freePort)
      // its own listeners take it from each other
      const { message } = yield* Effect.flip(
        Effect.scoped(gateway({ TRIGATE_PORT: port, TRIGATE_ADMIN_PORT: port }))
      )
      assert.strictEqual(message, `127.0.0.1:${port} is in use; set --admin-port or TRIGATE_ADMIN_PORT to another port`)
      yield* gateway({ TRIGATE_PORT: port })
    }))

  it.live("is reported when it is no address of this machine", () =>
    Effect.gen(function*() {
      const environment = { TRIGATE_HOST: "192.0.2.1", TRIGATE_PORT: "18080", TRIGATE_CALLERS: "open" }
      const { message } = yield* Effect.flip(Effect.scoped(gateway(environment)))
      assert.strictEqual(
        message,
        "192.0.2.1:18080 is not an address of this machine; set --host or TRIGATE_HOST to another one"
      )
    }))
})

describe("a signal, while a request and an action are in flight,", () => {
  it.live("lets them finish, relays the action once, and takes no connection after them, also when it comes twice", () =>
    Effect.gen(function*() {
      const upstream = yield* heldUpstream
      const open: Array<() => void> = []
      const api = yield* faultyUpstream((socket) => void open.push(() => socket.resetAndDestroy()))
      const running = yield* gatewayProcess({
        TRIGATE_LAYER2_URL: upstream.url,
        TRIGATE_TRADING_API_URL: api.url,
        TRIGATE_ONCE_DEADLINE: "10 minutes",
        TRIGATE_ACCESS_LOG: "off"
      })
      const [probe, caller] = [yield* connection, yield* connection]
      assert.strictEqual((yield* probe(`${running.url}/health/ready`)).status, 200)
      const inFlight = yield* Effect.forkChild(caller(`${running.url}/l2`, receiptCall))
      const now = yield* Clock.currentTimeMillis
      const action = yield* Effect.forkChild(post(`${running.url}/exchange`, bodyOf(now, bigBlocks)))
      yield* Effect.promise(() => upstream.asked)
      yield* api.until(() => open.length === 1)

      running.signal("SIGTERM")
      const draining = yield* Effect.repeat(probe(`${running.url}/health/ready`), {
        until: ({ status }) => status !== 200
      })
      assert.deepStrictEqual({ status: draining.status, reused: draining.reused }, { status: 503, reused: true })
      assert.include(draining.body, `"status":"draining"`)
      assert.strictEqual((yield* probe(`${running.url}/health/live`)).status, 200)

      for (const breakOff of open) breakOff()
      const outcome = yield* Fiber.join(action)
      assert.strictEqual(outcome.status, 504)
      assert.include(outcome.json, { _tag: "OutcomeUnknown", nonce: now })
      // else a client that keeps its connection would keep the process as well
      assert.strictEqual(outcome.headers.get("connection"), "close")

      running.signal("SIGTERM")
      assert.strictEqual((yield* probe(`${running.url}/health/ready`)).status, 503)
      upstream.release(`{"jsonrpc":"2.0","id":1,"result":null}`)
      const answer = yield* Fiber.join(inFlight)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.body, `{"jsonrpc":"2.0","id":1,"result":null}`)
      assert.strictEqual(yield* ended(running), 0)
      assert.strictEqual(api.requests.length, 1)
      const after = yield* connection
      assert.isTrue(Exit.isFailure(yield* Effect.exit(after(`${running.url}/health/live`))))
    }))
})

describe("secrets", () => {
  it.live("of the settings and of callers appear nowhere", () =>
    Effect.gen(function*() {
      const base = (yield* refusingUrl).replace("http://", "")
      const running = yield* gatewayProcess({
        TRIGATE_TRADING_API_URL: `http://canary-user:canary-password@${base}/canary-api`,
        TRIGATE_TRADING_NODE_URL: `http://${base}/canary-node,http://${base}/canary-second`,
        TRIGATE_TOKEN_CHAIN_URL: `http://${base}/canary-tokens`,
        TRIGATE_LAYER2_URL: `http://canary-host.invalid/canary-layer2`,
        TRIGATE_REDIS_URL: `redis://:canary-redis@${base}`,
        TRIGATE_DATABASE_URL: `postgres://canary-database:canary@${base}/canary`,
        // a busy machine must not make the gateway refuse the requests that find Redis unreachable
        TRIGATE_MAX_LAG: "1 hour"
      })
      const headers = {
        authorization: "Bearer canary-token",
        cookie: "session=canary-cookie",
        "x-api-key": "canary-header",
        "x-request-id": "canary id with spaces",
        "x-forwarded-for": "canary-address"
      }
      const now = yield* Clock.currentTimeMillis
      const action = `{"type":"evmUserModify","usingBigBlocks":true,"note":"canary-body"}`
      const signed = `{"action":${action},"nonce":${now},"signature":{"r":"0x1","s":"0x2","v":27},"more":"canary-body"}`
      const posts: ReadonlyArray<readonly [path: string, body: string]> = [
        ["/exchange", signed],
        ["/exchange", signed.replace(`"0x1"`, `"0xcanary"`)],
        ["/exchange", `{"canary-body`],
        ["/info", `{"type":"spotMeta","note":"canary-body"}`],
        ["/info", `{"type":"canary-body"}`],
        ["/evm", `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`],
        ["/evm", `{"jsonrpc":"canary","id":1,"method":"eth_gasPrice","params":["canary"]}`],
        ["/api/v2/jsonRPC", `{"jsonrpc":"2.0","id":1,"method":"shards","params":{"seqno":1}}`],
        ["/l2", receiptCall],
        ["/canary-key/exchange", signed],
        ["/canary-key/info", `{"type":"spotMeta"}`],
        ["/canary-key/evm", `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice"}`],
        ["/canary-key/api/v2/jsonRPC", `{"jsonrpc":"2.0","id":1,"method":"shards","params":{"seqno":1}}`],
        ["/canary-key/l2", receiptCall],
        ["/canary-key", receiptCall],
        ["/canary.key/l2", receiptCall],
        ["/canary-key/nothing", receiptCall]
      ]
      const gets = [
        "/api/v2/getTokenData?address=EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz&key=canary-query",
        "/canary-key/api/v2/getTokenData?address=EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz",
        "/canary-key/evm",
        "/health/ready",
        "/metrics",
        "/openapi.json"
      ]
      const answers = [
        ...yield* Effect.forEach(posts, ([path, body]) => post(`${running.url}${path}`, body, headers)),
        ...yield* Effect.forEach(gets, (path) => get(`${running.url}${path}`, headers))
      ]
      for (const { headers, text } of answers) {
        assert.notInclude(text, "canary")
        assert.notInclude(JSON.stringify([...headers]), "canary")
      }
      assert.includeMembers(answers.map(({ status }) => status), [200, 400, 404, 501, 503])
      running.signal("SIGTERM")
      assert.strictEqual(yield* ended(running), 0)
      const told = [
        "Signed actions are refused",
        "Redis is unreachable for rate-limits",
        "Redis is unreachable for cache",
        "Redis is unreachable for streams",
        "is ejected"
      ]
      const requests = running.lines().filter((line) => JsonParts.at(line, "message") === "request")
      for (const text of told) assert.include(running.printed(), text)
      // the probes that are answered well leave no line
      assert.lengthOf(requests, answers.length - 2)
      assert.notInclude(running.printed(), "canary")
    }))
})
