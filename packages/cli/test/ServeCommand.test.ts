/** `trigate serve`: where its settings come from, and what it checks. */
import { assert, describe, it } from "@effect/vitest"
import { post } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import { recordingUpstream, refusingUrl, rpcFailure, rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { folder, run, start } from "./run.ts"

describe("trigate serve", () => {
  it.live("takes a flag before the environment, and the environment before the file of its folder", () =>
    Effect.gen(function*() {
      const cwd = yield* folder
      const layer2Url = "http://127.0.0.1:9/key"
      fs.writeFileSync(path.join(cwd, "trigate.config.yaml"), `port: 1\nnetwork: mainnet\nlayer2Url: [${layer2Url}]\n`)
      const running = yield* gatewayProcess(
        { TRIGATE_PORT: "2", TRIGATE_NETWORK: "testnet" },
        { args: ["--port", "0"], folder: cwd }
      )
      assert.notInclude(["1", "2"], new URL(running.url).port)
      const [first = "", ...lines] = running.printed().split("\n")
      assert.include(first, "(testnet)")
      assert.include(lines, "  layer2: layer2 x1")
    }))
})

describe("SIGHUP", () => {
  it.live("has the settings read again: good ones count from then on, wrong ones change nothing", () =>
    Effect.gen(function*() {
      const file = path.join(yield* folder, "trigate.config.toml")
      const layer2Url = yield* refusingUrl
      const write = (text: string) =>
        fs.writeFileSync(file, `accessLog = false\nlayer2Url = "${layer2Url}"\nlayer2Batch = 20\n${text}\n`)
      write("")
      const running = yield* start(["serve", "--port", "0", "--config", file])
      const url = /listens on (?<url>\S+)/u.exec(yield* running.says("/health/ready"))?.groups?.["url"] ?? ""
      const call = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`
      const isTooLong = Effect.map(
        post(`${url}/l2`, `[${call},${call}]`),
        ({ text }) => text.includes("A batch has at most 1 call")
      )
      assert.isFalse(yield* isTooLong)

      write("batchLimit = 1\nport = 9000\ndatabaseUrl = \"actions.db\"\nlayer2Rps = 25")
      running.signal("SIGHUP")
      // the port of the flag beats that of the file
      yield* running.says("Restart the gateway to apply TRIGATE_DATABASE_URL: until then, the old values are used")
      yield* running.says(
        "TRIGATE_LAYER2_BATCH has no effect: reads of different callers are no longer sent in one batch"
      )
      yield* running.says("Settings read again: TRIGATE_LAYER2_RPS, TRIGATE_BATCH_LIMIT applied")
      assert.isTrue(yield* isTooLong)

      write("batchLimit = 100\nreadDeadline = 5")
      running.signal("SIGHUP")
      yield* running.says(
        `Settings read again: the old ones stay in use, because readDeadline in ${file} is not valid: expected`
      )
      assert.isTrue(yield* isTooLong)

      running.signal("SIGTERM")
      const { code, stderr, stdout } = yield* running.ended
      assert.deepStrictEqual([code, stderr, stdout.split("Settings read again").length - 1], [0, "", 2])
    }))
})

describe("SIGHUP", () => {
  it.live("opens the audit log anew, also after wrong settings: a file that was moved away gets no more lines", () =>
    Effect.gen(function*() {
      const place = yield* folder
      const audit = path.join(place, "audit.jsonl")
      const file = path.join(place, "trigate.config.toml")
      fs.writeFileSync(file, "accessLog = false\n")
      const running = yield* start(["serve", "--port", "0", "--config", file, "--audit-log", audit])
      const url = /listens on (?<url>\S+)/u.exec(yield* running.says("/health/ready"))?.groups?.["url"] ?? ""
      const nonce = yield* Clock.currentTimeMillis
      const send = (more: number) =>
        post(
          `${url}/exchange`,
          `{"action":{"type":"evmUserModify","usingBigBlocks":true},"nonce":${nonce + more},` +
            `"signature":{"r":"0x1","s":"0x2","v":27}}`
        )
      const nonces = (name: string): ReadonlyArray<unknown> =>
        fs.existsSync(name)
          ? fs.readFileSync(name, "utf8").split("\n").filter((line) => line !== "").map((line) =>
            JsonParts.value(line, "nonce")
          )
          : []
      yield* send(0)
      while (nonces(audit).length < 1) yield* Effect.yieldNow
      fs.renameSync(audit, `${audit}.1`)
      fs.writeFileSync(file, "readDeadline = 5\n")
      running.signal("SIGHUP")
      yield* running.says("Settings read again: the old ones stay")
      assert.deepStrictEqual(nonces(audit), [])
      assert.strictEqual(fs.statSync(audit).mode & 0o777, 0o600)
      yield* send(1)
      while (nonces(audit).length < 1) yield* Effect.yieldNow
      assert.deepStrictEqual([nonces(`${audit}.1`), nonces(audit)], [[nonce], [nonce + 1]])
    }))
})

/** Runs `trigate serve --check` and reads its table without the spaces between columns. */
const check = (environment: { readonly [name: string]: string }) =>
  Effect.map(
    run(["serve", "--check"], { environment }),
    ({ stdout, ...ended }) => ({ ...ended, rows: stdout.trim().split("\n").map((line) => line.split(/ {2,}/u)) })
  )

describe("trigate serve --check", () => {
  const mainnet = recordingUpstream(rpcReply("\"0x3e7\""))

  it.live("ends with 0 where every address and store answers, and on the chain of its network", () =>
    Effect.gen(function*() {
      const [api, node, tokens, layer2] = [
        yield* recordingUpstream(() => ({ body: `{"specialStatuses":null}` })),
        yield* mainnet,
        yield* recordingUpstream(() => ({ status: 429, body: "{}" })),
        yield* recordingUpstream(rpcReply("\"0x7a69\""))
      ]
      const { code, rows, stderr } = yield* check({
        TRIGATE_TRADING_API_URL: api.url,
        TRIGATE_TRADING_NODE_URL: `${node.url}/s3cr3t-key`,
        TRIGATE_TOKEN_CHAIN_URL: tokens.url,
        TRIGATE_LAYER2_URL: `${layer2.url}/one,${layer2.url}/two`,
        TRIGATE_DATABASE_URL: path.join(yield* folder, "actions.db")
      })
      assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
      assert.deepStrictEqual(rows, [
        ["What", "State", "Detail"],
        ["trading-api#0", "answers"],
        ["trading-node#0", "answers", "chain 999"],
        ["token-chain#0", "answers", "the upstream's rate limit is used up"],
        ["layer2#0", "answers", "chain 31337"],
        ["layer2#1", "answers", "chain 31337"],
        ["redis", "not configured"],
        ["database", "answers", "SQLite: the gateway will create the file"],
        ["admin", "configured", "127.0.0.1:8080, on the callers' listener"]
      ])
      assert.deepStrictEqual(
        [api, node, tokens, layer2].map(({ seen }) => seen.map(({ path }) => path).toSorted()),
        [["/info"], ["/s3cr3t-key/evm"], ["/api/v2/jsonRPC"], ["/one", "/two"]]
      )
    }))

  it.live("ends with 5 where any does not, and says which by its place and never by its address", () =>
    Effect.gen(function*() {
      const [nobody, node, down, other] = [
        yield* refusingUrl,
        yield* mainnet,
        yield* recordingUpstream(() => ({ status: 503, body: "no" })),
        yield* recordingUpstream(rpcReply("\"0x3e6\""))
      ]
      const unauthorized = yield* recordingUpstream(() => ({ status: 401, body: "{}" }))
      const silent = yield* recordingUpstream(rpcFailure(`{"code":-32000,"message":"s3cr3t"}`))
      const { code, rows, stderr } = yield* check({
        TRIGATE_TRADING_API_URL: `${nobody}/s3cr3t`,
        TRIGATE_TRADING_NODE_URL: `${other.url}/s3cr3t,${node.url}/s3cr3t,${silent.url}/s3cr3t`,
        TRIGATE_TOKEN_CHAIN_URL: `${unauthorized.url}/s3cr3t`,
        TRIGATE_LAYER2_URL: `${down.url}/s3cr3t,${node.url}/s3cr3t,${other.url}/s3cr3t`,
        TRIGATE_REDIS_URL: "redis://:s3cr3t@127.0.0.1:9",
        TRIGATE_DATABASE_URL: "/s3cr3t/none/actions.db"
      })
      assert.deepStrictEqual({ code, stderr }, { code: 5, stderr: "trigate: 8 of 11 checks failed\n" })
      assert.deepStrictEqual(rows, [
        ["What", "State", "Detail"],
        ["trading-api#0", "fails", "no connection"],
        ["trading-node#0", "wrong chain", "chain 998, but mainnet is on chain 999"],
        ["trading-node#1", "answers", "chain 999"],
        ["trading-node#2", "fails", "the node does not return its chain ID: check the endpoint key in the URL"],
        ["token-chain#0", "fails", "the probe was refused: check the endpoint key in the URL"],
        ["layer2#0", "fails", "the server reported an error (HTTP 5xx)"],
        ["layer2#1", "answers", "chain 999"],
        ["layer2#2", "wrong chain", "chain 998, but another URL is on chain 999"],
        ["redis", "fails", "no response to PING"],
        ["database", "fails", "SQLite: the folder of the file does not exist; create it"],
        ["admin", "configured", "127.0.0.1:8080, on the callers' listener"]
      ])
    }))

  it.live("says why a database refuses, and which action types and coins are misspelled", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(({ body }) => ({
        body: body.includes(`"meta"`)
          ? `{"universe":[{"name":"BTC","szDecimals":5,"maxLeverage":40}],"marginTables":[],"collateralToken":0}`
          : `{"specialStatuses":null}`
      }))
      const { code, rows } = yield* check({
        TRIGATE_TRADING_API_URL: api.url,
        // no other test listens there, as one may on a port that was free before
        TRIGATE_DATABASE_URL: "postgres://trigate:s3cr3t@127.0.0.1:1/trigate",
        TRIGATE_RELAY_ACTIONS: "ordr,cancel,laterAction",
        TRIGATE_ARCHIVE: "BTC:1m,BTX:1h"
      })
      assert.strictEqual(code, 5)
      assert.deepStrictEqual(rows.filter(([, state]) => state === "fails"), [
        ["database", "fails", "Postgres does not respond to queries: connect ECONNREFUSED 127.0.0.1:1"],
        ["TRIGATE_RELAY_ACTIONS", "fails", "ordr is not an action type (did you mean order?)"],
        ["TRIGATE_ARCHIVE", "fails", "the venue does not list BTX"]
      ])
    }))

  it.live("counts the keys of callers, and says where they cannot be read", () =>
    Effect.gen(function*() {
      const file = path.join(yield* folder, "keys.json")
      const environment = { TRIGATE_HOST: "0.0.0.0", TRIGATE_CALLERS: file }
      fs.writeFileSync(file, `{"version":1,"keys":[]}`, { mode: 0o600 })
      const found = yield* check(environment)
      assert.deepStrictEqual({ code: found.code, last: found.rows.at(-1) }, {
        code: 0,
        last: ["callers", "answers", `${file}: 0 valid keys`]
      })
      fs.writeFileSync(file, "{}")
      const broken = yield* check(environment)
      assert.deepStrictEqual({ code: broken.code, last: broken.rows.at(-1) }, {
        code: 5,
        last: ["callers", "fails", `${file} is not a key file; create one with trigate keys create`]
      })
      const { code, stderr } = yield* check({ TRIGATE_HOST: "0.0.0.0" })
      assert.strictEqual(code, 2)
      assert.include(stderr, "trigate: other machines can reach 0.0.0.0: set TRIGATE_CALLERS")
    }))

  it.live("says where the admin routes would be, and refuses a place that strangers reach without a key", () =>
    Effect.gen(function*() {
      const admin = (environment: { readonly [name: string]: string }) =>
        Effect.map(check(environment), ({ rows }) => rows.find(([name]) => name === "admin"))
      const open = { TRIGATE_HOST: "0.0.0.0", TRIGATE_CALLERS: "open" }
      assert.deepStrictEqual(yield* admin(open), [
        "admin",
        "not configured",
        "set TRIGATE_ADMIN_PORT to serve the admin routes"
      ])
      assert.deepStrictEqual(yield* admin({ ...open, TRIGATE_ADMIN_PORT: "9464" }), [
        "admin",
        "configured",
        "127.0.0.1:9464"
      ])
      const { code, stderr } = yield* check({ ...open, TRIGATE_ADMIN_PORT: "9464", TRIGATE_ADMIN_HOST: "0.0.0.0" })
      assert.strictEqual(code, 2)
      assert.include(stderr, "set TRIGATE_ADMIN_HOST to a loopback address")
    }))

  it.live("asks nodes that are said to be archives for an old block", () =>
    Effect.gen(function*() {
      const from = `0x${"ab".repeat(20)}`
      const nodeOf = (old: string) =>
        recordingUpstream((request) => {
          const answer = request.body.includes("eth_chainId")
            ? `"0x3e7"`
            : request.body.includes("eth_getBlockByNumber")
            ? `{"number":"0x64","transactions":[{"from":"${from}"}]}`
            : request.body.includes(`"0x1"`)
            ? old
            : `"0x9"`
          return rpcReply(answer)(request)
        })
      const [archive, other] = [yield* nodeOf(`"0x0"`), yield* nodeOf(`"0x9"`)]
      const { code, rows } = yield* check({
        TRIGATE_TRADING_NODE_URL: `${archive.url}/s3cr3t/evm,${other.url}/s3cr3t`,
        TRIGATE_TRADING_NODE_ARCHIVE: "on"
      })
      assert.strictEqual(code, 5)
      assert.deepStrictEqual(rows.filter(([name]) => name?.startsWith("trading-node")), [
        ["trading-node#0", "answers", "chain 999"],
        ["trading-node#1", "answers", "chain 999"],
        ["trading-node#0 archive", "answers"],
        ["trading-node#1 archive", "fails", "is not an archive node: it returns the latest state for block 1"]
      ])
      assert.deepStrictEqual([archive, other].map(({ seen }) => seen.length), [4, 4])
    }))
})
