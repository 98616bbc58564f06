/**
 * JSON-RPC 2.0 as text: envelopes are read and written without re-encoding what they carry.
 *
 * A caller's `id` goes back exactly as it came and a result is the upstream's own text, so ids and integers of any size
 * survive. `id`, `params`, `result` and `error` are raw JSON slices throughout.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { decodeText, failureOf, malformed } from "./Answer.ts"
import type { CommonFailure, GatewayError } from "./GatewayError.ts"
import { commonFailures, GatewayError as GatewayErrorSchema, rpcCodes } from "./GatewayError.ts"
import * as JsonText from "./JsonText.ts"
import type { AnyCodec, MethodClass, Operation } from "./Operation.ts"
import { InvalidRequest, UnsupportedMethod } from "./RequestError.ts"
import type { UpstreamMalformed } from "./UpstreamError.ts"
import { UpstreamRateLimited, UpstreamUnavailable } from "./UpstreamError.ts"
import type { UpstreamResponse } from "./UpstreamResponse.ts"

/** The most calls that a batch may have in any gateway: as many as viem sends in one unless it is told otherwise. */
export const longestBatch = 1_000

/** One call of a caller: `id` is its raw text, absent for a notification; `params` is `[]` when not given. */
export interface RpcCall {
  readonly id: string | undefined
  readonly method: string
  readonly params: string
}

/** What an upstream answered to one call: the raw result, or its error object with the raw text of it; `age` in seconds. */
export type RpcAnswer =
  | { readonly _tag: "Result"; readonly result: string; readonly age?: number }
  | {
    readonly _tag: "Error"
    readonly code: number
    readonly message: string
    readonly error: string
    readonly age?: number
  }

/** What a node says that does not have a method. */
export const methodNotFound = (method: string): RpcAnswer => {
  const message = `the method ${method} does not exist`
  return { _tag: "Error", code: -32601, message, error: JSON.stringify({ code: -32601, message }) }
}

const RpcError = Schema.Struct({
  code: Schema.Int,
  message: Schema.String,
  data: Schema.optionalKey(Schema.Unknown)
})
const decodeRpcError = Schema.decodeUnknownOption(RpcError)

/** The text of a request envelope. */
export const requestText = (id: number, method: string, params: string): string =>
  `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`

/** The text of an answer that carries a result. */
export const resultText = (id: string, result: string): string => `{"jsonrpc":"2.0","id":${id},"result":${result}}`

/** The text of an answer that carries an upstream's own error object. */
export const errorText = (id: string, error: string): string => `{"jsonrpc":"2.0","id":${id},"error":${error}}`

const encodeError = Schema.encodeResult(GatewayErrorSchema)

/** The error object of a typed error: its code, its message, and the error itself as `data`. */
export const errorObject = (error: GatewayError, code: number = rpcCodes[error._tag]): string =>
  JsonText.stringify({ code, message: error.message, data: Result.getOrUndefined(encodeError(error)) })

const invalid = (message: string): InvalidRequest =>
  new InvalidRequest({ errors: [{ path: [], message }], detail: message })

const isId = (value: unknown): boolean =>
  value === null || Predicate.isString(value) || Predicate.isNumber(value) || Predicate.isBigInt(value)

/** Reads one envelope that already parsed to `value`; the failure is JSON-RPC's "invalid request" (-32600). */
export const readCall = (text: string, value: unknown): Result.Result<RpcCall, InvalidRequest> => {
  if (!Predicate.isObject(value)) return Result.fail(invalid("Expected a JSON-RPC object"))
  const { id, jsonrpc, method, params } = value
  if (jsonrpc !== "2.0") return Result.fail(invalid(`Expected "jsonrpc": "2.0"`))
  if (!Predicate.isString(method)) return Result.fail(invalid("Expected a method name"))
  // some clients of Ethereum nodes write no params as null, and nodes take that
  if (params !== undefined && params !== null && !Array.isArray(params) && !Predicate.isObject(params)) {
    return Result.fail(invalid("Expected params to be an array or an object"))
  }
  if (id !== undefined && !isId(id)) return Result.fail(invalid("Expected id to be a string, a number or null"))
  const spans = JsonText.members(text)
  const slice = (key: string): string | undefined => {
    const span = spans.get(key)
    return span === undefined ? undefined : text.slice(span.start, span.end)
  }
  return Result.succeed({ id: slice("id"), method, params: params === null ? "[]" : slice("params") ?? "[]" })
}

/** The raw text of a member; nothing where there is none. */
const rawIn = (text: string, spans: ReadonlyMap<string, JsonText.Span>, name: string): string | undefined => {
  const span = spans.get(name)
  return span === undefined ? undefined : text.slice(span.start, span.end)
}

const errorIn = (raw: string) => decodeRpcError(Result.getOrElse(JsonText.parse(raw), () => undefined))

/**
 * Reads an upstream's answer to the call that was sent with `id`; a wrong id, both or neither of result and error fail.
 *
 * The text has to be JSON: see {@link JsonText.isJson}.
 */
const readMember = (upstream: string, text: string, id: number): Result.Result<RpcAnswer, UpstreamMalformed> => {
  const spans = JsonText.members(text)
  const result = rawIn(text, spans, "result")
  const error = rawIn(text, spans, "error")
  const answered = rawIn(text, spans, "id")
  const answersUs = answered === String(id)
  const failure = error === undefined || result !== undefined ? Option.none() : errorIn(error)
  if (error !== undefined && Option.isSome(failure)) {
    // a node that could not read the request answers with a null id
    return answersUs || answered === "null"
      ? Result.succeed({ _tag: "Error", code: failure.value.code, message: failure.value.message, error })
      : Result.fail(malformed(upstream, "The answer's id is not the request's"))
  }
  if (spans.size === 0) return Result.fail(malformed(upstream, "Expected a JSON-RPC object"))
  if (!answersUs) return Result.fail(malformed(upstream, "The answer's id is not the request's"))
  return result === undefined || (error !== undefined && error !== "null")
    ? Result.fail(malformed(upstream, "Expected exactly one of result and error"))
    : Result.succeed({ _tag: "Result", result })
}

/** Reads an upstream's answer to the call that was sent with `id`; a wrong id, both or neither of result and error fail. */
export const readAnswer = (upstream: string, text: string, id: number): Result.Result<RpcAnswer, UpstreamMalformed> =>
  JsonText.isJson(text) ? readMember(upstream, text, id) : Result.fail(malformed(upstream, "Not a JSON document"))

const idOf = (text: string): string | undefined => rawIn(text, JsonText.members(text), "id")

/**
 * Reads an upstream's answer to a batch that was sent with `ids`: an answer or a fault for each, in the order of `ids`.
 *
 * Answers may come in any order. One that is missing or comes twice is a fault of its call alone, one that nobody asked for
 * is left out. A text that is no array is a fault of the whole.
 */
export const readBatch = (
  upstream: string,
  text: string,
  ids: ReadonlyArray<number>
): Result.Result<ReadonlyArray<Result.Result<RpcAnswer, UpstreamMalformed>>, UpstreamMalformed> => {
  const elements = JsonText.isJson(text) ? JsonText.elements(text) : undefined
  if (elements === undefined) return Result.fail(malformed(upstream, "Expected the answers of a batch"))
  const answers = new Map<string | undefined, string | undefined>()
  for (const element of elements) {
    const id = idOf(element)
    answers.set(id, answers.has(id) ? undefined : element)
  }
  return Result.succeed(ids.map((id) => {
    const answer = answers.get(String(id))
    return answer === undefined
      ? Result.fail(malformed(upstream, "The batch has not exactly one answer with the call's id"))
      : readMember(upstream, answer, id)
  }))
}

/**
 * Reads an upstream's whole answer to the call that was sent with `id`.
 *
 * Nodes send JSON-RPC errors with any status; only where there is none does the status (or the problem document of a
 * gateway upstream) say what happened. 429 is told by the status whatever the body says.
 */
export const answerOf = (answer: UpstreamResponse, id: number): Effect.Effect<RpcAnswer, CommonFailure> => {
  if (answer.status === 429) return Effect.fail(failureOf(answer))
  const read = Effect.fromResult(readAnswer(answer.upstream, answer.text, id))
  return answer.status === 200 ? read : Effect.mapError(read, () => failureOf(answer))
}

// EIP-1474's "method not supported" beside the standard's "method not found": nodes use either for the same thing
const unsupportedCodes = new Set([-32601, -32004])
// EIP-1474, QuickNode, and the HTTP status that some providers put in the code
const rateLimitCodes = new Set([-32005, -32007, 429])

/** Whether an error's code says that the caller has asked too much. */
export const isRateLimit = (code: number): boolean => rateLimitCodes.has(code)

const failureOfCode = (upstream: string, method: string, code: number, message: string): CommonFailure => {
  const detail = `${upstream} answered error ${code}: ${message}`
  if (unsupportedCodes.has(code)) return new UnsupportedMethod({ method, detail })
  if (code === -32602 || code === -32600 || code === -32700) {
    return new InvalidRequest({ errors: [{ path: ["params"], message }], detail })
  }
  if (isRateLimit(code)) return new UpstreamRateLimited({ upstream, detail })
  return new UpstreamUnavailable({ upstream, attempts: 1, detail })
}

/** The reader of an operation's JSON-RPC answers; an error's `data` gives back the typed error that travelled in it. */
export const readerOf = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, MethodClass, Request, Response, Failures>) => {
  const decodeData = Schema.decodeUnknownOption(Schema.Union([...commonFailures, ...operation.failures]))
  const decodeResult = decodeText(operation.response)
  return (
    upstream: string,
    answer: RpcAnswer
  ): Effect.Effect<Response["Type"], Failures[number]["Type"] | CommonFailure> => {
    if (answer._tag === "Result") return decodeResult(upstream, answer.result)
    const parsed = Result.getOrElse(JsonText.parse(answer.error), () => undefined)
    const travelled = decodeData(Predicate.hasProperty(parsed, "data") ? parsed.data : undefined)
    return Effect.fail(
      travelled._tag === "Some"
        ? travelled.value
        : failureOfCode(upstream, operation.name, answer.code, answer.message)
    )
  }
}
