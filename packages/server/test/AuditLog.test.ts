import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { jsonLine } from "@trigate/server/unstable/requests/Observe"
import * as AuditLogWriter from "@trigate/server/unstable/stores/AuditLogWriter"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { gateway, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { AuditEntry } from "@trigate/trading/actionLog/ActionLog"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import { systemError } from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { bigBlocks, bodyOf } from "./bodies.ts"
import { liveGateway } from "./liveGateway.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "audit-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

const linesOf = (path: string): ReadonlyArray<unknown> =>
  Fs.readFileSync(path, "utf8").split("\n").filter((line) => line !== "").map((line): unknown => JSON.parse(line))

/** Asks until a file has so many lines: they are written in the background. */
const written = (path: string, count: number): Effect.Effect<ReadonlyArray<unknown>> =>
  Effect.suspend(() => {
    const lines = Fs.existsSync(path) ? linesOf(path) : []
    return lines.length >= count ? Effect.succeed(lines) : Effect.andThen(Effect.yieldNow, written(path, count))
  })

const entry = (nonce: number): AuditEntry => ({
  time: 1_795_230_000_000,
  message: "action",
  requestId: "one",
  caller: "key:desk",
  signer: "0x0000000000000000000000000000000000000001",
  nonce,
  digest: "0xdd",
  actionType: "evmUserModify",
  outcome: "accepted",
  status: 200
})

const lostCount = Effect.map(Metric.snapshot, (found) => {
  const state = found.find(({ id }) => id === "trigate_audit_log_lost_total")?.state
  return state !== undefined && "count" in state ? Number(state.count) : 0
})

describe("the audit log of a gateway", () => {
  it.live("is a file for its owner alone, with a line for each signed action and never a signature", () =>
    Effect.gen(function*() {
      const path = Path.join(yield* folder, "audit.jsonl")
      const live = yield* liveGateway({ api: () => ({ body: `{"status":"ok","response":{"type":"default"}}` }) }, {
        TRIGATE_AUDIT_LOG: path
      })
      const now = yield* Clock.currentTimeMillis
      const signed = yield* Effect.orDie(
        SandboxSigner.signAction(keys.trader, { nonce: now, action: { type: "evmUserModify", usingBigBlocks: true } })
      )
      const answer = yield* post(`${live.url}/exchange`, JSON.stringify(signed), { "x-request-id": "desk-1" })
      assert.strictEqual(answer.status, 200)
      const [line, ...others] = yield* written(path, 1)
      assert.lengthOf(others, 0)
      assert(typeof line === "object" && line !== null)
      assert.deepStrictEqual(Object.keys(line), [
        "time",
        "level",
        "message",
        "requestId",
        "caller",
        "signer",
        "nonce",
        "digest",
        "actionType",
        "outcome",
        "status",
        "previous"
      ])
      assert.deepInclude(line, {
        level: "info",
        message: "action",
        requestId: "desk-1",
        signer: keys.trader.address,
        nonce: now,
        actionType: "evmUserModify",
        outcome: "accepted",
        status: 200
      })
      assert.strictEqual(Fs.statSync(path).mode & 0o777, 0o600)
      const text = Fs.readFileSync(path, "utf8")
      for (const part of [signed.signature.r, signed.signature.s]) assert.notInclude(text, part.slice(2))
    }))

  it.live("stops the start if it cannot be opened, and says so without the path", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(gateway({ TRIGATE_AUDIT_LOG: "/proc/nowhere/audit.jsonl" }))
      assert(error._tag === "SettingsError")
      assert.strictEqual(error.message, "TRIGATE_AUDIT_LOG names a file that cannot be opened (NotFound)")
    }))

  it.live("refuses no action while its disk is full", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ body: `{"status":"ok","response":{"type":"default"}}` }) }, {
        TRIGATE_AUDIT_LOG: "/dev/full"
      })
      const now = yield* Clock.currentTimeMillis
      for (const nonce of [now, now + 1]) {
        assert.strictEqual((yield* post(`${live.url}/exchange`, bodyOf(nonce, bigBlocks))).status, 200)
      }
    }).pipe(Effect.provide(Logger.layer([]))))
})

/** A disk that may be full, the writer of its lines, and what the program says. */
const disk = () => {
  const state = { isFull: false, text: "" }
  const said: Array<string> = []
  const full = systemError({ _tag: "WriteZero", module: "FileSystem", method: "writeAll" })
  const append = (text: string) =>
    Effect.suspend(() => {
      // a full disk takes a part of it
      state.text += state.isFull ? text.slice(0, 10) : text
      return state.isFull ? Effect.fail(full) : Effect.void
    })
  const log = Logger.layer([Logger.make(({ message }) => void said.push(String(message)))])
  return { state, said, writer: Effect.provide(AuditLogWriter.lineWriter(append, jsonLine), log) }
}

const numbers = (text: string) =>
  text.split("\n").filter((line) => line.endsWith("}")).map((line) => JsonParts.value(line, "nonce"))

describe("the audit log while its disk is full", () => {
  it.effect("keeps lines until it can write them, in their order, and counts what it loses", () =>
    Effect.gen(function*() {
      const { said, state, writer } = disk()
      const write = yield* writer
      write(entry(1))
      while (state.text === "") yield* Effect.yieldNow
      state.isFull = true
      write(entry(2))
      while (said.length === 0) yield* Effect.yieldNow
      const before = yield* lostCount
      for (let nonce = 3; nonce < AuditLogWriter.backlog + 3 + 5; nonce++) write(entry(nonce))
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(numbers(state.text), [1])
      state.isFull = false
      yield* TestClock.adjust("1 second")
      while (said.length < 2) yield* Effect.yieldNow
      write(entry(99_999))
      while (!state.text.includes("99999")) yield* Effect.yieldNow
      const kept = Array.from({ length: AuditLogWriter.backlog + 2 }, (_, index) => index + 1)
      assert.deepStrictEqual(numbers(state.text), [...kept, undefined, 99_999])
      assert.include(state.text, `"level":"error","message":"lost","lines":5}`)
      assert.strictEqual((yield* lostCount) - before, 5)
      assert.deepStrictEqual(said, [
        "The audit log cannot be written (WriteZero): 8192 lines are buffered, and further lines are lost",
        "The audit log can be written again; 5 lines were lost"
      ])
    }))

  it.effect("writes what waits before the program ends, and ends if it cannot", () =>
    Effect.gen(function*() {
      const { state, writer } = disk()
      yield* Effect.scoped(Effect.gen(function*() {
        const write = yield* writer
        write(entry(1))
        write(entry(2))
      }))
      assert.deepStrictEqual(numbers(state.text), [1, 2])
      state.isFull = true
      yield* advancingClock(Effect.scoped(Effect.map(writer, (write) => write(entry(3)))))
      assert.deepStrictEqual(numbers(state.text), [1, 2])
    }))
})

/** Writes entries to a file as one process does, from its start to its end. */
const writeTo = (path: string, nonces: ReadonlyArray<number>) =>
  Effect.scoped(Effect.gen(function*() {
    const { write } = Context.get(
      yield* Layer.build(AuditLogWriter.layer(Option.some(path))),
      AuditLogWriter.AuditLogWriter
    )
    for (const nonce of nonces) write?.(entry(nonce))
  }))

const verify = (text: string) =>
  Effect.result(AuditLogWriter.verify(Stream.fromIterable(text.split("\n")))).pipe(
    Effect.map((result) => Result.isSuccess(result) ? result.success : `${result.failure._tag} ${result.failure.line}`)
  )

const noLines = { lines: 0, unchained: 0, unreadable: 0, first: "", last: "" }

describe("the chain of the audit log", () => {
  it.live("continues over restarts, after a line that a killed process has not ended, and in a new file", () =>
    Effect.gen(function*() {
      const path = Path.join(yield* folder, "audit.jsonl")
      yield* writeTo(path, [1, 2])
      yield* writeTo(path, [3])
      const before = yield* verify(Fs.readFileSync(path, "utf8"))
      assert.deepInclude(before, { lines: 3, unchained: 0, unreadable: 0, first: "" })
      Fs.appendFileSync(path, `{"time":1,"lev`)
      yield* writeTo(path, [4])
      const after = yield* verify(Fs.readFileSync(path, "utf8"))
      assert.deepInclude(after, { lines: 4, unreadable: 1 })
      // a whole line whose line break is missing
      Fs.truncateSync(path, Fs.statSync(path).size - 1)
      yield* writeTo(path, [5])
      assert.deepInclude(yield* verify(Fs.readFileSync(path, "utf8")), { lines: 5, unreadable: 1 })
      assert.deepStrictEqual(numbers(Fs.readFileSync(path, "utf8")), [1, 2, 3, 4, 5])
    }))

  it.effect("shows a line that was changed, removed or moved", () =>
    Effect.gen(function*() {
      const state = { text: "" }
      yield* Effect.scoped(Effect.gen(function*() {
        const write = yield* AuditLogWriter.lineWriter(
          (text) => Effect.sync(() => void (state.text += text)),
          jsonLine,
          ""
        )
        for (const nonce of [1, 2, 3, 4]) write(entry(nonce))
      }))
      const [one = "", two = "", three = "", four = ""] = state.text.split("\n")
      const intact = yield* verify(state.text)
      assert.deepInclude(intact, { lines: 4, first: "", unreadable: 0, unchained: 0 })
      assert.strictEqual(yield* verify([one, two.replace("200", "500"), three].join("\n")), "BrokenChain 3")
      assert.strictEqual(yield* verify([one, three, four].join("\n")), "BrokenChain 2")
      assert.strictEqual(yield* verify([one, three, two, four].join("\n")), "BrokenChain 2")
      assert.strictEqual(yield* verify([one, `{"nonce":2}`, two].join("\n")), "BrokenChain 2")
      // a batch of which a full disk took a part is written again
      assert.deepStrictEqual(
        yield* verify([one, two, three, four.slice(0, 9), two, three, four].join("\n")),
        typeof intact === "string" ? intact : { ...intact, unreadable: 1 }
      )
      const [last, removed] = [yield* verify([one, two].join("\n")), yield* verify([three, four].join("\n"))]
      assert(typeof last !== "string" && typeof removed !== "string")
      assert.strictEqual(removed.first, last.last)
      assert.deepStrictEqual(yield* verify(""), noLines)
      assert.deepInclude(yield* verify([`{"nonce":0}`, `{"nonce":1}`].join("\n")), { lines: 2, unchained: 2 })
    }))
})
