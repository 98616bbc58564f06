/**
 * JSON-RPC 2.0 as text: decodes and encodes envelopes without re-encoding their content.
 *
 * A caller's `id` is returned exactly as received, and a result is the upstream's text, so that IDs and integers of any size are
 * preserved.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../encoding/Json.ts"
import {
  type GatewayError,
  GatewayError as GatewayErrorSchema,
  rpcCodes,
  type ServedFailure
} from "../errors/GatewayError.ts"
import { InvalidRequest } from "../errors/RequestError.ts"
import type { UpstreamMalformed } from "../errors/UpstreamError.ts"
import { malformed, servedResponseFailure } from "./Protocol.ts"
import type { UpstreamResponse } from "./UpstreamResponse.ts"

/** Maximum number of calls in a batch that a gateway can be configured to accept. It is viem's default batch size. */
export const longestBatch = 1_000

/** One call: `id` is the raw JSON text of the ID, and is absent for a notification. `params` defaults to `[]`. */
export interface RpcCall {
  readonly id: string | undefined
  readonly method: string
  readonly params: Json.Json
}

/** An upstream's response to one call: a result or an error object. `age` is its age in the cache, in seconds. */
export type RpcAnswer =
  | { readonly _tag: "Result"; readonly result: Json.Json; readonly age?: number }
  | {
    readonly _tag: "Error"
    readonly code: number
    readonly message: string
    /** The complete error object. */
    readonly error: Json.Json
    /**
     * Whether the upstream's error is not a valid JSON-RPC error object. If so, a different upstream URL might return a
     * valid response.
     */
    readonly isOdd?: true
    /**
     * Whether the error was sent with HTTP 401 or 403, which means that the upstream refuses the gateway, regardless of
     * the error code.
     */
    readonly isForbidden?: true
    readonly age?: number
  }

/** Makes a result response. */
export const result = (value: Json.Json, age?: number): RpcAnswer => ({
  _tag: "Result",
  result: value,
  ...(age === undefined ? {} : { age })
})

/** Makes an error response, for implementations of a node. */
export const error = (code: number, message: string): RpcAnswer => ({
  _tag: "Error",
  code,
  message,
  error: Json.write({ code, message })
})

/** Makes a node's response to an unsupported method. */
export const methodNotFound = (method: string): RpcAnswer => error(-32601, `the method ${method} does not exist`)

const decodeRpcError = Schema.decodeUnknownOption(Schema.Struct({ code: Schema.Int, message: Schema.String }))

/** Encodes a request envelope. */
export const requestText = (id: number, method: string, params: string): string =>
  `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`

/** Encodes a result response from the JSON texts of the ID and the result. */
export const resultText = (id: string, result: string): string => `{"jsonrpc":"2.0","id":${id},"result":${result}}`

/** Encodes an error response from the JSON texts of the ID and the error object. */
export const errorText = (id: string, error: string): string => `{"jsonrpc":"2.0","id":${id},"error":${error}}`

const encodeError = Schema.encodeResult(GatewayErrorSchema)

/** Makes the error object of a typed error: its code, its message, and the error itself as `data`. */
export const errorObject = (error: GatewayError, code: number = rpcCodes[error._tag]): string =>
  Json.stringify({ code, message: error.message, data: Result.getOrUndefined(encodeError(error)) })

const invalid = (message: string): InvalidRequest =>
  new InvalidRequest({ errors: [{ path: [], message }], detail: message })

const isId = (value: unknown): boolean =>
  value === null || Predicate.isString(value) || Predicate.isNumber(value) || Predicate.isBigInt(value)

/** Returns the raw text of a member; `undefined` if there is no such member. */
export const rawMember = (
  text: string,
  spans: ReadonlyMap<string, Json.Span>,
  name: string
): string | undefined => {
  const span = spans.get(name)
  return span === undefined ? undefined : text.slice(span.start, span.end)
}

const noParams = Json.parsed("[]", [])

/** Decodes one envelope. Fails with JSON-RPC's "invalid request" (-32600). */
export const readCall = ({ text, valueOrUndefined: value }: Json.Json): Result.Result<RpcCall, InvalidRequest> => {
  if (!Predicate.isObject(value)) return Result.fail(invalid("Expected a JSON-RPC object"))
  const { id, jsonrpc, method, params } = value
  if (jsonrpc !== "2.0") return Result.fail(invalid(`Expected "jsonrpc": "2.0"`))
  if (!Predicate.isString(method)) return Result.fail(invalid("Expected a method name"))
  // some Ethereum clients send absent params as `null`, which nodes accept
  if (params !== undefined && params !== null && !Array.isArray(params) && !Predicate.isObject(params)) {
    return Result.fail(invalid("Expected params to be an array or an object"))
  }
  if (id !== undefined && !isId(id)) return Result.fail(invalid("Expected id to be a string, a number or null"))
  const spans = Json.members(text)
  const raw = rawMember(text, spans, "params")
  return Result.succeed({
    id: rawMember(text, spans, "id"),
    method,
    params: raw === undefined || params === null ? noParams : Json.parsed(raw, params)
  })
}

/**
 * The formats in which viem, web3 and ethers encode calls. Params without a nested bracket, brace or escape cannot
 * contain a duplicate key.
 */
const usualCalls: ReadonlyArray<RegExp> = [
  /^\{"jsonrpc":"2\.0","id":(?<id>[0-9]{1,15}),"method":"(?<method>\w{1,64})","params":(?<params>\[[^[\]{}\\]*\])\}$/u,
  /^\{"method":"(?<method>\w{1,64})","params":(?<params>\[[^[\]{}\\]*\]),"id":(?<id>[0-9]{1,15}),"jsonrpc":"2\.0"\}$/u
]

/**
 * Maximum length, in characters, of a call that {@link usualCall} parses. A call of this length always has fewer JSON
 * values than the limit for request bodies.
 */
const longestUsual = 4096

/**
 * Parses a call in a common format; `undefined` means only that the format differs.
 *
 * For every text that it recognizes, a strict parser followed by {@link readCall} would return the same result at four
 * times the cost.
 */
export const usualCall = (text: string): RpcCall | undefined => {
  if (text.length > longestUsual) return undefined
  for (const pattern of usualCalls) {
    const { id, method, params } = pattern.exec(text)?.groups ?? {}
    if (id === undefined || method === undefined || params === undefined) continue
    const value = Json.parse(params)
    const isId = id === "0" || !id.startsWith("0")
    return isId && Result.isSuccess(value) ? { id, method, params: Json.parsed(params, value.success) } : undefined
  }
  return undefined
}

/** Returns a member of a parsed value; `undefined` if there is no such member. */
export const member = (value: unknown, name: string): unknown =>
  Predicate.hasProperty(value, name) ? value[name] : undefined

/** The code for errors without an integer code: a server error (JSON-RPC 2.0, 5.1). */
const noCode = -32000

const MAX_WORDS = 240

const errorMessage = (error: unknown, raw: string): string => {
  if (Predicate.isString(error)) return error
  const said = [member(error, "message"), member(error, "error"), member(error, "data")].find((each) =>
    Predicate.isString(each) && each !== ""
  )
  return Predicate.isString(said) ? said : raw.slice(0, MAX_WORDS)
}

/**
 * Decodes a node's error. Returns it unchanged if clients can decode it; otherwise adds the missing code or message.
 */
const readError = (raw: string, value: unknown): Extract<RpcAnswer, { readonly _tag: "Error" }> => {
  const usual = decodeRpcError(value)
  if (Option.isSome(usual)) return { _tag: "Error", ...usual.value, error: Json.parsed(raw, value) }
  const given = member(value, "code")
  const code = Predicate.isString(given) && /^-?[0-9]{1,15}$/u.test(given) ? Number(given) : given
  const message = errorMessage(value, raw)
  const rest = Predicate.isObject(value) && !Array.isArray(value) ? value : {}
  const known = Predicate.isNumber(code) && Number.isSafeInteger(code) ? code : noCode
  return { _tag: "Error", code: known, message, error: Json.write({ ...rest, code: known, message }), isOdd: true }
}

const readMember = (
  upstream: string,
  text: string,
  value: unknown,
  id: number
): Result.Result<RpcAnswer, UpstreamMalformed> => {
  const spans = Json.members(text)
  const result = rawMember(text, spans, "result")
  const error = rawMember(text, spans, "error")
  const answeredId = rawMember(text, spans, "id")
  const answersUs = answeredId === String(id)
  // Erigon sends a null result with an error
  if (error !== undefined && error !== "null" && (result === undefined || result === "null")) {
    // a node that could not parse the request responds with a null id
    return answersUs || answeredId === "null"
      ? Result.succeed(readError(error, member(value, "error")))
      : Result.fail(malformed(upstream, "The response has a different id than the request"))
  }
  if (spans.size === 0) return Result.fail(malformed(upstream, "Expected a JSON-RPC object"))
  if (!answersUs) return Result.fail(malformed(upstream, "The response has a different id than the request"))
  return result === undefined || (error !== undefined && error !== "null")
    ? Result.fail(malformed(upstream, "Expected exactly one of result and error"))
    : Result.succeed({ _tag: "Result", result: Json.parsed(result, member(value, "result")) })
}

const isVisible = (text: string, at: number): boolean => text.charCodeAt(at) > 0x20

/**
 * Extracts the result from the response to the call with the ID `id`, if the response has the format that most nodes
 * use; otherwise returns `undefined`.
 */
const usualResult = (text: string, id: number): RpcAnswer | undefined => {
  const head = `{"jsonrpc":"2.0","id":${id},"result":`
  const end = text.length - 1
  if (!text.startsWith(head) || text[end] !== "}" || !isVisible(text, head.length) || !isVisible(text, end - 1)) {
    return undefined
  }
  // the slice is one value: if the envelope has another member, the slice contains a comma outside a value, which is
  // invalid JSON
  const result = text.slice(head.length, end)
  const value = Json.parse(result)
  return Result.isSuccess(value) ? { _tag: "Result", result: Json.parsed(result, value.success) } : undefined
}

/**
 * Decodes the response to the call with the ID `id`. Fails if the ID is wrong, or if the response does not have exactly
 * one of result and error.
 */
export const readAnswer = (
  upstream: string,
  json: Json.Json,
  id: number
): Result.Result<RpcAnswer, UpstreamMalformed> => {
  const usual = usualResult(json.text, id)
  if (usual !== undefined) return Result.succeed(usual)
  return Result.match(json.value, {
    onFailure: () => Result.fail(malformed(upstream, Json.notJson.message)),
    onSuccess: (parsed) => readMember(upstream, json.text, parsed, id)
  })
}

/** The response to one call of a batch. */
export type BatchMember = Result.Result<RpcAnswer, UpstreamMalformed>

/**
 * Decodes a batch response that has the usual format and order of most nodes; returns `undefined` for any other
 * response.
 *
 * The text is split before each expected ID. Each part is checked to be one response, so the split is unambiguous.
 */
const usualResults = (text: string, ids: ReadonlyArray<number>): ReadonlyArray<BatchMember> | undefined => {
  const results: Array<BatchMember> = []
  let start = 1
  for (const [place, id] of ids.entries()) {
    const next = ids[place + 1]
    const end = next === undefined ? text.length - 2 : text.indexOf(`},{"jsonrpc":"2.0","id":${next},"result":`, start)
    const answer = end < 0 ? undefined : usualResult(text.slice(start, end + 1), id)
    if (answer === undefined) return undefined
    results.push(Result.succeed(answer))
    start = end + 2
  }
  return text.startsWith("[") && text.endsWith("]") ? results : undefined
}

/**
 * Decodes the response to a batch whose calls have the IDs `ids`. Returns a result or an error for each ID, in the
 * order of `ids`.
 *
 * The responses can be in any order. If the response to one call is missing or duplicated, only that call fails; a
 * response with an unknown ID is ignored. If the text is not an array, the whole batch fails.
 */
export const readBatch = (
  upstream: string,
  json: Json.Json,
  ids: ReadonlyArray<number>
): Result.Result<ReadonlyArray<BatchMember>, UpstreamMalformed> => {
  const usual = usualResults(json.text, ids)
  if (usual !== undefined) return Result.succeed(usual)
  const { text, valueOrUndefined } = json
  const elements = Array.isArray(valueOrUndefined) ? Json.elements(text) : undefined
  if (elements === undefined || !Array.isArray(valueOrUndefined)) {
    return Result.fail(malformed(upstream, "Expected the responses of a batch"))
  }
  const values: ReadonlyArray<unknown> = valueOrUndefined
  const places = new Map<string | undefined, number | undefined>()
  for (const [place, element] of elements.entries()) {
    const id = rawMember(element, Json.members(element), "id")
    places.set(id, places.has(id) ? undefined : place)
  }
  return Result.succeed(ids.map((id) => {
    const place = places.get(String(id))
    return place === undefined
      ? Result.fail(malformed(upstream, "The batch does not have exactly one response with the call's id"))
      : readMember(upstream, elements[place] ?? "", values[place], id)
  }))
}

/**
 * Decodes a gateway's HTTP response to the call with the ID `id`.
 *
 * HTTP 429 means that a rate limit is exhausted, regardless of the body. With any other status, a JSON-RPC response is
 * decoded. A body that is not a JSON-RPC response fails with `UpstreamMalformed` for HTTP 200, otherwise with the error
 * of the problem document or of the status.
 */
export const parseAnswer = (response: UpstreamResponse, id: number): Effect.Effect<RpcAnswer, ServedFailure> => {
  if (response.status === 429) return Effect.fail(servedResponseFailure(response))
  const read = Effect.fromResult(readAnswer(response.upstream, response.json, id))
  return response.status === 200 ? read : Effect.mapError(read, () => servedResponseFailure(response))
}

// the codes of EIP-1474 and QuickNode, and the HTTP status 429, which some providers send as the code
const rateLimitCodes = new Set([-32005, -32007, 429])

/** Returns whether an error code means that a rate limit is exhausted. */
export const isRateLimit = (code: number): boolean => rateLimitCodes.has(code)
