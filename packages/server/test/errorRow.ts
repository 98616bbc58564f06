/** One row of the error table: how it is produced, and everything that a caller then sees. */
import { assert } from "@effect/vitest"
import type { ActionRejected } from "@trigate/domain/actions/ActionOutcome"
import * as Json from "@trigate/domain/encoding/Encoding"
import { GatewayError as GatewayErrorType, gatewayErrors, unwrapReason } from "@trigate/domain/errors/GatewayError"
import type { CallError } from "@trigate/domain/errors/GatewayError"
import { problemType } from "@trigate/domain/errors/Problem"
import type { Client } from "@trigate/testing/Client"
import { makeClient } from "@trigate/testing/Client"
import type { Environment, GatewayResponse } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { deadline, deadlinesOnTestClock, endsAfter, withoutJitter } from "./faults/time.ts"
import type { Responses } from "./liveGateway.ts"
import { liveGateway } from "./liveGateway.ts"

export interface Row {
  readonly what: string
  readonly tag: GatewayErrorType["_tag"]
  readonly upstreams?: Responses
  /** Settings besides the addresses of the four upstreams. */
  readonly environment?: Environment
  /** Asks over raw HTTP; `now` is the clock of gateway and test. */
  readonly ask: (url: string, now: number) => Effect.Effect<GatewayResponse>
  /** The status of the error, which a JSON-RPC route tells in `error.data` only. */
  readonly status: number
  /** The status of the answer, where it is not the error's own. */
  readonly http?: number
  /** The code of the error; its presence says that the route speaks JSON-RPC, or the token chain's envelope. */
  readonly rpc?: { readonly protocol: "json-rpc" | "token-rpc"; readonly code: number; readonly id?: unknown }
  /** Every member of the error besides those that all have, from the error itself where the clock is in it. */
  readonly fields: (now: number, error: unknown) => object
  /** Whether it takes the whole deadline: the upstream says nothing. */
  readonly takesDeadline?: boolean
  /** Requests that reached any upstream. */
  readonly sent: number
  /** The call of the typed client that ends in the same error. */
  readonly client: (client: Client, now: number) => Effect.Effect<unknown, CallError | ActionRejected>
  readonly endpointKey?: string
  /**
   * The typed client cannot make such a request, or would make another one: it gets the very answer of the gateway, replayed,
   * to read.
   */
  readonly replay?: true
}

/** An address at which nobody listens. */
export const dead = "http://127.0.0.1:1"

const encode = Schema.encodeSync(GatewayErrorType)
const isGatewayError = Schema.is(GatewayErrorType)

const titleOf = (tag: string): string => {
  const words = tag.replace(/(?<=[a-z0-9])[A-Z]/gu, (letter) => ` ${letter.toLowerCase()}`)
  return words === "Unavailable on node" ? "Unavailable on a node" : words
}

const checkError = (row: Row, now: number, error: unknown): void => {
  const detail = JsonParts.at(error, "detail")
  assert.isString(detail)
  assert.deepStrictEqual(error, {
    type: problemType(row.tag),
    title: titleOf(row.tag),
    status: row.status,
    detail,
    _tag: row.tag,
    ...row.fields(now, error)
  })
}

/** A problem without the members that clients of the chain's own servers read in it. */
const groupOf = (tag: GatewayErrorType["_tag"]) =>
  gatewayErrors.find(({ identifier }) => identifier === tag)?.prototype.group

const withoutNativeMembers = ({ json, path }: GatewayResponse, tag: GatewayErrorType["_tag"]): unknown => {
  if (!Predicate.isObject(json)) return json
  if (/\/(?:exchange|info)$/u.test(path)) {
    const { code, error, msg, ...rest } = json
    // clients repeat a refusal unless it has a text member `error`
    const isFinal = ["fix-request", "fix-setup"].includes(groupOf(tag) ?? "") && rest["status"] !== 401
    const { detail } = rest
    assert.deepStrictEqual({ code, msg, error }, {
      code: rest["status"],
      msg: detail,
      error: isFinal ? detail : undefined
    })
    return rest
  }
  if (!("ok" in json)) return json
  const { code, error, ok, ...rest } = json
  assert.deepStrictEqual({ code, error, ok }, { code: rest["status"], error: rest["detail"], ok: false })
  return rest
}

/** The error as the wire carried it. */
const errorIn = (row: Row, answer: GatewayResponse): unknown => {
  if (row.rpc === undefined) {
    assert.strictEqual(answer.status, row.http ?? row.status)
    assert.strictEqual(answer.type, "application/problem+json")
    const retryAfter = JsonParts.at(answer.json, "retryAfter")
    assert.strictEqual(answer.headers.get("retry-after"), retryAfter === undefined ? null : `${Number(retryAfter)}`)
    return withoutNativeMembers(answer, row.tag)
  }
  assert.strictEqual(answer.status, row.http ?? 200)
  assert.strictEqual(answer.type, "application/json")
  const id = row.rpc.id === undefined ? 1 : row.rpc.id
  if (row.rpc.protocol === "json-rpc") {
    const data = JsonParts.at(answer.json, "error", "data")
    const message = JsonParts.at(answer.json, "error", "message")
    assert.strictEqual(message, JsonParts.at(data, "detail"))
    assert.deepStrictEqual(answer.json, { jsonrpc: "2.0", id, error: { code: row.rpc.code, message, data } })
    return data
  }
  const data = JsonParts.at(answer.json, "data")
  const error = JsonParts.at(answer.json, "error")
  assert.strictEqual(error, JsonParts.at(data, "detail"))
  assert.deepStrictEqual(answer.json, {
    ok: false,
    error,
    code: row.rpc.code,
    data,
    jsonrpc: "2.0",
    ...(id === null ? {} : { id })
  })
  return data
}

const replay = (answer: GatewayResponse) =>
  Effect.map(
    recordingUpstream(() => ({
      status: answer.status,
      type: answer.type,
      headers: answer.headers.has("retry-after") ? { "retry-after": answer.headers.get("retry-after") ?? "" } : {},
      body: answer.bytes
    })),
    ({ url }) => url
  )

/** A gateway in the time of the test's `TestClock`, and a call of it that ends at once, or at its deadline. */
const started = Effect.fnUntraced(function*(row: Row) {
  const live = yield* withoutJitter(liveGateway(row.upstreams, {
    TRIGATE_READ_DEADLINE: `${deadline} millis`,
    TRIGATE_ONCE_DEADLINE: `${deadline} millis`,
    ...row.environment
  }))
  const isAsked = Effect.repeat(Effect.yieldNow, { until: () => live.seen().length === row.sent })
  return {
    live,
    inTime: <A, E, R>(call: Effect.Effect<A, E, R>) =>
      row.takesDeadline === true ? endsAfter(deadline, call, isAsked) : call
  }
})

/** Produces the row over a socket and checks all of it, then reads it back with the typed client. */
export const check = Effect.fnUntraced(function*(row: Row) {
  yield* deadlinesOnTestClock
  // rows hold nonces of two days ago
  yield* TestClock.adjust("10 days")
  const { inTime, live } = yield* started(row)
  const now = yield* Clock.currentTimeMillis
  const answer = yield* inTime(row.ask(live.url, now))
  const error = errorIn(row, answer)
  checkError(row, now, error)
  assert.strictEqual(live.seen().length, row.sent)

  // another gateway where an upstream was asked, or nobody listens: the failures may have ejected an address of this one
  const isUntouched = row.sent === 0 && !Object.values(row.environment ?? {}).some((value) => value.includes(dead))
  const { inTime: again, live: second } = row.replay || isUntouched ? { inTime, live } : yield* started(row)
  const client = yield* makeClient(row.replay ? yield* replay(answer) : second.url, row.endpointKey)
  const outcome = yield* Effect.result(row.replay ? row.client(client, now) : again(row.client(client, now)))
  assert(outcome._tag === "Failure")
  const failure = unwrapReason(outcome.failure)
  assert(isGatewayError(failure), failure._tag)
  assert.strictEqual(failure._tag, row.tag)
  const travelled: unknown = JSON.parse(Json.stringify(encode(failure)))
  checkError(row, now, travelled)
  if (row.replay) assert.deepStrictEqual(travelled, error)
  assert.strictEqual(second.seen().length, row.sent)
})
