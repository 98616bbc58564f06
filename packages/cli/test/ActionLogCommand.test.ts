import { assert, describe, it } from "@effect/vitest"
import { Address } from "@trigate/domain/encoding/Encoding"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { gateway, get, post } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import { isInstalled, postgresDatabase } from "@trigate/testing/PostgresServer"
import type { RawUpstream } from "@trigate/testing/RawUpstream"
import { rawUpstream } from "@trigate/testing/RawUpstream"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { run } from "./run.ts"

const ok = `{"status":"ok","response":{"type":"default"}}`
const duplicate = `{"status":"err","response":"Invalid nonce: duplicate nonce"}`

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "trigate-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

const sqlite = Effect.map(folder, (path) => Path.join(path, "actions.sqlite"))

/** A body of the trader's. */
const signedBody = (nonce: number) =>
  Effect.map(
    Effect.orDie(
      SandboxSigner.signAction(keys.trader, { nonce, action: { type: "evmUserModify", usingBigBlocks: true } })
    ),
    (signed) => JSON.stringify(signed)
  )

/** Bodies of the trader's, under nonces from now on. */
const signedBodies = (count: number) =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => Effect.forEach(Array.from({ length: count }, (_, index) => now + index), signedBody)
  )

const quietly = { TRIGATE_ACCESS_LOG: "off" }

const Listed = Schema.Struct({
  id: Schema.String,
  state: Schema.Literals(["sent", "unknown"]),
  signer: Address,
  nonce: Schema.Int,
  actionType: Schema.Literal("evmUserModify"),
  body: Schema.String
})
const decodeLine = Schema.decodeUnknownEffect(Schema.fromJsonString(Listed))

/** `trigate actions …` in this process, about the log in a database. */
const actions = (database: string, ...args: ReadonlyArray<string>) =>
  run(["actions", ...args], { environment: { TRIGATE_DATABASE_URL: database } })

const listed = (database: string) =>
  Effect.flatMap(
    actions(database, "list", "--json"),
    ({ code, stderr, stdout }) => {
      assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
      return Effect.forEach(stdout.split("\n").filter(Boolean), (line) => decodeLine(line))
    }
  )

const killed = Effect.fnUntraced(function*(database: string) {
  const upstream = yield* rawUpstream((body) => body.includes("true") ? "silence" : { body: ok })
  const settings = { ...quietly, TRIGATE_TRADING_API_URL: upstream.url, TRIGATE_DATABASE_URL: database }
  const running = yield* gatewayProcess(settings)
  const [broken, answered, ...bodies] = yield* signedBodies(22)
  assert(broken !== undefined && answered !== undefined)

  // one with an unknown outcome and one with an answer already behind it
  upstream.treat = () => "reset"
  assert.strictEqual((yield* post(`${running.url}/exchange`, broken)).status, 504)
  upstream.treat = () => ({ body: ok })
  assert.strictEqual((yield* post(`${running.url}/exchange`, answered)).text, ok)
  upstream.treat = () => "silence"
  const calls = yield* Effect.forEach(
    bodies,
    (body) => Effect.forkChild(Effect.exit(post(`${running.url}/exchange`, body)))
  )
  yield* Effect.raceFirst(
    upstream.received(22),
    // the upstream says nothing, so a call that ends was not sent
    Effect.flatMap(
      Effect.raceAllFirst(calls.map((call) => Fiber.join(call))),
      (ended) => Effect.die(new Error(`A call ended before all were sent: ${JSON.stringify(ended)}`))
    )
  )
  running.signal("SIGKILL")
  yield* Effect.promise(() => running.ended)
  yield* Effect.forEach(calls, Fiber.await)

  const expected = [broken, ...bodies]
  const left = yield* listed(database)
  assert.sameMembers(left.map(({ body }) => body), expected)
  assert.lengthOf(left, expected.length)
  assert.strictEqual(left.filter(({ state }) => state === "unknown").length, 1)
  assert.isTrue(left.every(({ signer }) => signer === keys.trader.address))
  return { settings, upstream, expected }
})

describe("a gateway that was killed", () => {
  it.live(
    "leaves every action that it had sent and not answered in a SQLite file, each once",
    () =>
      Effect.gen(function*() {
        const database = yield* sqlite
        const { expected, settings, upstream } = yield* killed(database)

        const again = yield* gatewayProcess(settings)
        assert.include(again.printed(), "  action log: in a SQLite file that only this gateway uses\n")
        const after = yield* listed(database)
        assert.sameMembers(after.map(({ body }) => body), expected)
        assert.isTrue(after.every(({ state }) => state === "unknown"))
        const people = yield* actions(database, "list")
        assert.include(people.stdout, "21 signed actions are unanswered (mainnet)\n")
        assert.include(people.stdout, "\n  trigate actions resolve 0x")
        assert.strictEqual(people.stdout.split(keys.trader.address).length, 22)
        again.signal("SIGTERM")
        assert.strictEqual(yield* Effect.promise(() => again.ended), 0)
        // nothing has sent any of them again
        assert.lengthOf(upstream.bodies, 22)
      })
  )

  it.live.runIf(isInstalled && isExhaustive)("leaves them in Postgres as well", () =>
    Effect.gen(function*() {
      const { url } = yield* postgresDatabase
      yield* killed(url)
    }))
})

describe("an action log that cannot be written", () => {
  const reads = rawUpstream(() => ({ body: `{"tokens":[],"universe":[]}` }))

  const refusesUnsent = Effect.fnUntraced(function*(url: string, upstream: RawUpstream) {
    const [body] = yield* signedBodies(1)
    assert(body !== undefined)
    for (const _ of [1, 2]) {
      const refused = yield* post(`${url}/exchange`, body)
      assert.strictEqual(refused.status, 503)
      assert.include(refused.text, `"_tag":"UpstreamUnavailable"`)
      assert.include(refused.text, "The action was not sent: the action log is unreachable")
      assert.include(refused.text, `"upstream":"action-log","attempts":0`)
    }
    assert.strictEqual(upstream.bytes(), 0)
    assert.strictEqual((yield* post(`${url}/info`, `{"type":"spotMeta"}`)).status, 200)
    assert.isAbove(upstream.bytes(), 0)
    assert.include((yield* get(`${url}/metrics`)).text, "trigate_action_log_degraded 1")
  })

  it.live("as a file refuses signed actions as not sent, without a byte to the venue; reads go on", () =>
    Effect.gen(function*() {
      const upstream = yield* reads
      const database = "/proc/nowhere/actions.sqlite"
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: upstream.url, TRIGATE_DATABASE_URL: database })
      yield* refusesUnsent(url, upstream)
    }))

  it.live("because its server is away does the same, and prints nothing of its address", () =>
    Effect.gen(function*() {
      const upstream = yield* reads
      const running = yield* gatewayProcess({
        ...quietly,
        TRIGATE_TRADING_API_URL: upstream.url,
        TRIGATE_DATABASE_URL: "postgres://canary:canary@127.0.0.1:9/canary"
      })
      yield* refusesUnsent(running.url, upstream)
      assert.include(running.printed(), "Signed actions are refused")
      assert.notInclude(running.printed(), "canary")
    }))

  it.live("refuses while the disk is full, and keeps what it holds", () =>
    Effect.gen(function*() {
      const upstream = yield* rawUpstream(() => ({ body: ok }))
      const database = yield* sqlite
      // a limit on the size of every file of the process: to SQLite the disk is full
      const running = yield* gatewayProcess(
        { ...quietly, TRIGATE_TRADING_API_URL: upstream.url, TRIGATE_DATABASE_URL: database },
        { maxFileKilobytes: 256 }
      )
      upstream.treat = () => "reset"
      const now = yield* Clock.currentTimeMillis
      let sent = 0
      let status = 504
      while (status === 504) {
        const body = yield* signedBody(now + sent)
        const answer = yield* post(`${running.url}/exchange`, body)
        status = answer.status
        if (status === 504) sent += 1
        else assert.include(answer.text, "The action was not sent: the action log is unreachable")
      }
      assert.strictEqual(status, 503)
      assert.lengthOf(upstream.bodies, sent)
      assert.strictEqual((yield* get(`${running.url}/health/live`)).status, 200)
      assert.lengthOf(yield* listed(database), sent)
    }))
})

describe("trigate actions", () => {
  it.live(
    "resolves an action by its identical bytes, only when told to, and forgets one",
    () =>
      Effect.gen(function*() {
        const database = yield* sqlite
        const upstream = yield* rawUpstream(() => "reset")
        const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: upstream.url, TRIGATE_DATABASE_URL: database })
        const bodies = yield* signedBodies(3)
        for (const body of bodies) assert.strictEqual((yield* post(`${url}/exchange`, body)).status, 504)
        const [first, second, third] = yield* listed(database)
        assert(first !== undefined && second !== undefined && third !== undefined)
        assert.deepStrictEqual(upstream.bodies, bodies)

        const resolve = (id: string) => actions(database, "resolve", id, "--gateway", url)
        upstream.treat = () => ({ body: duplicate })
        assert.deepStrictEqual(yield* resolve(first.id.slice(0, 14)), {
          code: 0,
          stdout:
            `The first attempt was accepted: the venue has seen the nonce ${first.nonce} (Invalid nonce: duplicate nonce)\n`,
          stderr: ""
        })
        upstream.treat = () => "reset"
        const open = yield* resolve(second.id)
        assert.deepStrictEqual([open.code, open.stdout], [7, ""])
        assert.match(open.stderr, /^trigate: Still unknown: [^\n]+\n$/u)
        const nowhere = { TRIGATE_DATABASE_URL: database, TRIGATE_GATEWAY_URL: "http://127.0.0.1:1/SECRET" }
        assert.deepStrictEqual(yield* run(["actions", "resolve", second.id], { environment: nowhere }), {
          code: 7,
          stdout: "",
          stderr: "trigate: Still unknown: no gateway responds at http://127.0.0.1:1; name another with --gateway\n"
        })
        assert.strictEqual((yield* actions(database, "forget", third.id)).stdout, `${third.id} is forgotten\n`)
        assert.deepStrictEqual(upstream.bodies.slice(3), [first.body, second.body])
        assert.deepStrictEqual((yield* listed(database)).map(({ body }) => body), [second.body])

        const statuses = `{"statuses":[{"error":"Insufficient margin"}]}`
        upstream.treat = () => ({ body: `{"status":"ok","response":{"type":"order","data":${statuses}}}` })
        assert.deepStrictEqual(yield* resolve(second.id), {
          code: 0,
          stdout: "Only this attempt was accepted; the venue refused legs of it (Insufficient margin)\n",
          stderr: ""
        })
      })
  )

  it.live("lists and clears the log that a gateway holds in memory, over its admin routes", () =>
    Effect.gen(function*() {
      const upstream = yield* rawUpstream(() => "reset")
      const { adminUrl } = yield* Effect.flatMap(
        gateway({ TRIGATE_TRADING_API_URL: upstream.url, TRIGATE_ADMIN_PORT: "0" }),
        (live) =>
          Effect.as(
            Effect.forEach([0, 1], (index) =>
              Effect.flatMap(signedBodies(index + 1), (bodies) =>
                post(`${live.url}/exchange`, bodies[index] ?? ""))),
            live
          )
      )
      const over = (...args: ReadonlyArray<string>) => run(["actions", ...args, "--admin", adminUrl])
      const lines = (yield* over("list", "--json")).stdout.split("\n").filter(Boolean)
      const [first = "", second = ""] = lines.map((line) => String(JsonParts.value(line, "id")))
      assert.lengthOf(lines, 2)
      for (const line of lines) assert.notInclude(line, "signature")
      assert.include((yield* over("list")).stdout, "2 signed actions are unanswered (mainnet)\n")
      upstream.treat = () => ({ body: duplicate })
      const resolved = yield* over("resolve", first)
      assert.deepStrictEqual([resolved.code, resolved.stderr], [0, ""])
      assert.include(resolved.stdout, "The first attempt was accepted")
      assert.strictEqual((yield* over("forget", second.slice(0, 12))).stdout, `${second} is forgotten\n`)
      assert.strictEqual((yield* over("list")).stdout, "No signed action is unanswered (mainnet)\n")
      assert.strictEqual(
        (yield* over("forget", second)).stderr,
        `trigate: No action of the log has the ID ${second}: with the same options, trigate actions list prints the IDs of unanswered actions\n`
      )
    }))

  it.live("works on the usual gateway without a database, and the commands that it prints run as they are", () =>
    Effect.gen(function*() {
      const api = yield* rawUpstream(() => "reset")
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: api.url })
      const [first = "", second = ""] = yield* signedBodies(2)
      for (const body of [first, second]) assert.strictEqual((yield* post(`${url}/exchange`, body)).status, 504)
      api.treat = () => ({ body: duplicate })
      const usual = { environment: { TRIGATE_GATEWAY_URL: url } }
      const places = [[[], usual], [["--admin", url], {}]] as const
      for (const [options, surroundings] of places) {
        const { code, stdout } = yield* run(["actions", "list", ...options], surroundings)
        assert.strictEqual(code, 0)
        const suggested = /^ {2}trigate (?<line>actions resolve 0x\S+.*)$/mu.exec(stdout)?.groups?.["line"] ?? ""
        const resolved = yield* run(suggested.split(" "), surroundings)
        assert.strictEqual(resolved.code, 0, resolved.stderr)
        assert.include(resolved.stdout, "The first attempt was accepted")
      }
      for (const alone of [["actions", "list"], ["actions"]]) {
        assert.strictEqual((yield* run(alone, usual)).stdout, "No signed action is unanswered (mainnet)\n")
      }
    }))

  it.live("says in one line why there is nothing to list", () =>
    Effect.gen(function*() {
      const failed = (code: number, stderr: string) => ({ code, stdout: "", stderr })
      const nowhere = yield* refusingUrl
      const unset = yield* run(["actions", "list"], { environment: { TRIGATE_GATEWAY_URL: nowhere } })
      assert.deepStrictEqual(
        unset,
        failed(
          1,
          "trigate: The gateway could not be reached (TransportError); name another gateway with --admin, or set " +
            "TRIGATE_DATABASE_URL to the database of its action log\n"
        )
      )
      const path = yield* sqlite
      const missing = yield* actions(path, "list")
      assert.deepStrictEqual(
        missing,
        failed(1, "trigate: The action log is unreachable (unable to open database file)\n")
      )
      assert.isFalse(Fs.existsSync(path))
    }))

  it.live("tells an empty log from none, and an ID that is not there", () =>
    Effect.gen(function*() {
      const path = yield* sqlite
      yield* gateway({ TRIGATE_TRADING_API_URL: "http://127.0.0.1:9", TRIGATE_DATABASE_URL: `sqlite:${path}` })
      assert.strictEqual(
        (yield* actions(`file:${path}`, "list")).stdout,
        "No signed action is unanswered (mainnet)\n"
      )
      const absent = yield* actions(`file:${path}`, "forget", "0xabc")
      assert.deepStrictEqual([absent.code, absent.stderr], [
        4,
        "trigate: No action of the log has the ID 0xabc: with the same options, trigate actions list prints the IDs of unanswered actions\n"
      ])
    }))
})

describe("trigate audit verify", () => {
  it.live("checks what a guarded gateway wrote: actions, refusals, halts and policies", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const [log, policies] = [Path.join(path, "audit.jsonl"), Path.join(path, "policies.yaml")]
      Fs.writeFileSync(policies, `policies: [{ name: desk, accounts: "*", actions: [noop] }]`)
      const settings = { ...quietly, TRIGATE_GUARD: policies, TRIGATE_AUDIT_LOG: log }
      yield* Effect.scoped(Effect.gen(function*() {
        const { adminUrl, url } = yield* gateway(settings)
        const [body = ""] = yield* signedBodies(1)
        assert.strictEqual((yield* post(`${url}/exchange`, body)).status, 422)
        yield* post(`${adminUrl}/admin/guard/halt`, `{"coin":"BTC"}`)
        yield* post(`${adminUrl}/admin/guard/resume`, `{"coin":"BTC"}`)
      }))
      const text = Fs.readFileSync(log, "utf8")
      const lines = text.split("\n").filter((line) => line !== "")
      assert.deepStrictEqual(
        lines.map((line) => ["message", "rule", "target", "policies"].map((name) => JsonParts.value(line, name))),
        [
          ["policies", undefined, undefined, 1],
          ["refusal", "actions", undefined, undefined],
          ["halt", undefined, "BTC", undefined],
          ["resume", undefined, "BTC", undefined]
        ]
      )
      const verified = yield* run(["audit", "verify", log])
      assert.strictEqual(verified.code, 0)
      const hash = /[0-9a-f]{64}/u.exec(verified.stdout)?.[0] ?? ""
      assert.strictEqual(
        verified.stdout,
        `${log}: 4 lines form one chain\n  the last line has the hash ${hash}\n`
      )
      assert.strictEqual((yield* run(["audit", "verify", log, "--expect", hash])).code, 0)
      const older = Path.join(path, "older.jsonl")
      Fs.writeFileSync(older, `${lines.slice(0, 2).join("\n")}\n`)
      assert.deepStrictEqual(yield* run(["audit", "verify", older, "--expect", hash]), {
        code: 1,
        stdout: (yield* run(["audit", "verify", older])).stdout,
        stderr: `trigate: No line has the hash ${hash}: newer lines are missing\n`
      })
      const newer = Path.join(path, "newer.jsonl")
      Fs.writeFileSync(newer, `${lines[3]}\n`)
      assert.strictEqual(
        (yield* run(["audit", "verify", older, newer])).stderr,
        `trigate: ${newer}: The file does not follow ${older}: lines or files are missing\n`
      )
      Fs.writeFileSync(newer, lines.slice(2).join("\n"))
      assert.strictEqual((yield* run(["audit", "verify", older, newer])).code, 0)
      Fs.writeFileSync(log, text.replace(`"BTC"`, `"ETH"`))
      assert.strictEqual(
        (yield* run(["audit", "verify", log])).stderr,
        `trigate: ${log}: Line 4 does not follow the line before it: lines were changed, removed or moved\n`
      )
    }))
})
