/**
 * The token chain's envelope: `{ok, result}` or `{ok: false, error, code}`, which is not JSON-RPC 2.0.
 *
 * Responses of both families of TON HTTP API servers (Python and C++), of node providers, and of an upstream gateway
 * decode to one shape.
 * Results and additional members stay raw, so integers of any size are preserved. Responses are encoded as standard
 * clients expect: a truthy `ok` on success; text in `error` and no `result` on failure; always HTTP 200.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../encoding/Json.ts"
import type { CommonFailure, GatewayError } from "../errors/GatewayError.ts"
import { GatewayError as GatewayErrorSchema, rpcCodes, upstreamFailures } from "../errors/GatewayError.ts"
import { InvalidAddress, InvalidRequest, UnsupportedMethod } from "../errors/RequestError.ts"
import { TokenNotFound } from "../errors/ResourceError.ts"
import {
  UpstreamForbidden,
  type UpstreamMalformed,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamUnavailable
} from "../errors/UpstreamError.ts"
import { member, rawMember, type RpcCall } from "../operations/JsonRpc.ts"
import type { AnyCodec, MethodClass, Operation } from "../operations/Operation.ts"
import { decodeJson, malformed } from "../operations/Protocol.ts"
import type { UpstreamResponse } from "../operations/UpstreamResponse.ts"

/** Additional members of an envelope (`@extra`), raw. */
export type Extras = ReadonlyArray<readonly [name: string, raw: string]>

/** An upstream's response to one call: the result or the error, and the response's age in seconds. */
export type TokenRpcAnswer =
  | { readonly _tag: "Result"; readonly result: Json.Json; readonly extras: Extras; readonly age?: number }
  | {
    readonly _tag: "Error"
    /** The error code from the server; the HTTP status if the server sent no code. */
    readonly code: number
    readonly message: string
    /** The typed error in a gateway's response. */
    readonly data: Json.Json | undefined
    /** Seconds from the response's `Retry-After` header. */
    readonly retryAfter: number | undefined
    readonly extras: Extras
    readonly age?: number
  }

const known = new Set(["ok", "result", "error", "code", "message", "data", "id", "jsonrpc", "@type"])
const decodeEncodedError = Schema.decodeUnknownOption(GatewayErrorSchema)
const MAX_MESSAGE = 240

const noParams = Json.parsed("{}", {})

/** Decodes the envelope of one request. Accepts a request without `jsonrpc` or `id`, as the chain's servers do. */
export const readCall = ({ text, valueOrUndefined: value }: Json.Json): Result.Result<RpcCall, InvalidRequest> => {
  const refused = (path: ReadonlyArray<string>, message: string): Result.Result<never, InvalidRequest> =>
    Result.fail(new InvalidRequest({ errors: [{ path, message }], detail: message }))
  if (!Predicate.isObject(value) || Array.isArray(value)) return refused([], "Expected a JSON-RPC object")
  const method = member(value, "method")
  if (!Predicate.isString(method)) return refused(["method"], "Expected a method name")
  const version = member(value, "jsonrpc")
  if (version !== undefined && version !== "2.0") return refused(["jsonrpc"], `Expected "jsonrpc": "2.0"`)
  const id = member(value, "id")
  if (Predicate.isObjectOrArray(id) || Predicate.isBoolean(id)) {
    return refused(["id"], "Expected id to be a string, a number or null")
  }
  const spans = Json.members(text)
  const params = rawMember(text, spans, "params")
  return Result.succeed({
    id: rawMember(text, spans, "id"),
    method,
    params: params === undefined ? noParams : Json.parsed(params, member(value, "params"))
  })
}

interface Failure {
  readonly code: number | undefined
  readonly message: string | undefined
  readonly data: unknown
}

const integer = (value: unknown): number | undefined => Number.isInteger(value) ? Number(value) : undefined

const words = (value: unknown): string | undefined => Predicate.isString(value) && value !== "" ? value : undefined

/** Decodes a failure in any of the known formats: flat, JSON-RPC 2.0, tonlib's own error, a problem document. */
const decodeFailure = (value: object): Failure => {
  const error = member(value, "error")
  const source = Predicate.isObject(error) ? error : value
  return {
    code: integer(member(source, "code")),
    message: words(error) ?? words(member(source, "message")) ?? words(member(value, "result")) ??
      words(member(value, "detail")),
    // a gateway's problem document is the error itself
    data: member(source, "data") ?? (Predicate.isString(member(value, "_tag")) ? value : undefined)
  }
}

const isTonlibError = (value: unknown): value is object =>
  Predicate.isObject(value) && member(value, "@type") === "error"

const errorAnswer = (
  { retryAfter, status }: Pick<UpstreamResponse, "retryAfter" | "status">,
  failure: Failure,
  extras: Extras
): TokenRpcAnswer => ({
  _tag: "Error",
  code: failure.code ?? status,
  message: (failure.message ?? `HTTP ${status}`).slice(0, MAX_MESSAGE),
  // only typed errors are forwarded, so that an upstream cannot put other data in the gateway's response
  data: Option.isSome(decodeEncodedError(failure.data)) ? Json.write(failure.data) : undefined,
  retryAfter,
  extras
})

/**
 * Decodes an upstream's response with any status.
 *
 * IDs are not compared: one family of servers omits IDs, the other family converts them to strings, and HTTP already
 * pairs responses with requests. Fails only if a successful response (2xx) is not a JSON object, or if a response has
 * neither a result nor a failure.
 */
export const readAnswer = (response: UpstreamResponse): Effect.Effect<TokenRpcAnswer, UpstreamMalformed> => {
  const { json, status, text, upstream } = response
  const value = json.valueOrUndefined
  const succeeded = status >= 200 && status < 300
  if (!Predicate.isObject(value) || Array.isArray(value)) {
    return succeeded
      ? Effect.fail(
        malformed(upstream, Result.isFailure(json.value) ? json.value.failure.message : "Expected an object")
      )
      : Effect.succeed(
        errorAnswer(response, { code: undefined, message: words(text.trim()), data: undefined }, [])
      )
  }
  const spans = Json.members(text)
  const extras = Array.from(spans).filter(([name]) => !known.has(name)).map(([name, span]) =>
    [name, text.slice(span.start, span.end)] as const
  )
  const result = rawMember(text, spans, "result")
  const ok = member(value, "ok")
  const carriesResult = result !== undefined && (ok === undefined ? !spans.has("error") : Boolean(ok))
  if (succeeded && carriesResult) {
    const inner = member(value, "result")
    return Effect.succeed(
      isTonlibError(inner)
        ? errorAnswer(response, decodeFailure(inner), extras)
        : { _tag: "Result", result: Json.parsed(result, inner), extras }
    )
  }
  const failed = !succeeded || ok === false || spans.has("error") || isTonlibError(value)
  return failed
    ? Effect.succeed(errorAnswer(response, decodeFailure(value), Predicate.isBoolean(ok) ? extras : []))
    : Effect.fail(malformed(upstream, "Expected ok with a result, or an error"))
}

const envelope = (members: string, extras: Extras, rawId: string | undefined): string => {
  const more = extras.map(([name, raw]) => `,${JSON.stringify(name)}:${raw}`).join("")
  const id = rawId === undefined ? "" : `,"id":${rawId}`
  return `{${members}${more},"jsonrpc":"2.0"${id}}`
}

/** Encodes a response envelope for a caller; `rawId` is the raw text of the caller's ID. */
export const answerText = (rawId: string | undefined, answer: TokenRpcAnswer): string => {
  if (answer._tag === "Result") return envelope(`"ok":true,"result":${answer.result.text}`, answer.extras, rawId)
  const data = answer.data === undefined ? "" : `,"data":${answer.data.text}`
  const failure = `"ok":false,"error":${JSON.stringify(answer.message)},"code":${answer.code}${data}`
  return envelope(failure, answer.extras, rawId)
}

const encodeError = Schema.encodeSync(GatewayErrorSchema)

/** Encodes the failure envelope of a typed error: its message, its JSON-RPC code, and the error itself as `data`. */
export const errorText = (error: GatewayError): (rawId: string | undefined) => string => {
  const answer: TokenRpcAnswer = {
    _tag: "Error",
    code: rpcCodes[error._tag],
    message: error.message,
    data: Json.write(encodeError(error)),
    retryAfter: undefined,
    extras: []
  }
  return (rawId) => answerText(rawId, answer)
}

/** The time that TON HTTP API servers wait for a chain node, in milliseconds. After this time, they return HTTP 504. */
const SERVER_DEADLINE_MILLIS = 10_000

// codes of invalid requests and missing resources, for which a retry does not help
const invalidCodes = new Set([400, 404, 416, 422, -32600, -32602, -32700])

type Refused = Extract<TokenRpcAnswer, { readonly _tag: "Error" }>

/** Maps the code and the text of a failure to a typed error. */
const failureOfAnswer = (
  operation: Pick<Operation, "name" | "protocol">,
  address: string | undefined,
  upstream: string,
  { code, message, retryAfter }: Refused
): CommonFailure | InvalidAddress | TokenNotFound => {
  const detail = `${upstream} returned error ${code}: ${message}`
  const retry = retryAfter === undefined ? {} : { retryAfter }
  const isRpc = operation.protocol === "token-rpc"
  if (operation.name === "getTokenData" && (code === 409 || /is not (?:a )?jetton or nft/iu.test(message))) {
    return new TokenNotFound({ address: address ?? "", contractType: "none", detail })
  }
  if (code === 401 || code === 403) return new UpstreamForbidden({ upstream, detail })
  if (code === 429 || code === -32005) return new UpstreamRateLimited({ upstream, detail, ...retry })
  if (isRpc && (code === -32601 || /^(?:unknown method|method not found|not found)$/iu.test(message))) {
    return new UnsupportedMethod({ method: operation.name, detail })
  }
  if (invalidCodes.has(code)) {
    return address !== undefined && /address/iu.test(message)
      ? new InvalidAddress({ address, reason: message, detail })
      : new InvalidRequest({ errors: [{ path: isRpc ? ["params"] : [], message }], detail })
  }
  if (code === 504 || /time-?out/iu.test(message)) {
    return new UpstreamTimeout({ upstream, deadline: SERVER_DEADLINE_MILLIS, detail })
  }
  return new UpstreamUnavailable({ upstream, attempts: 1, detail, ...retry })
}

/**
 * Makes the reader of an operation's responses, for the JSON-RPC methods and for `getTokenData` over REST.
 *
 * A failure decodes to the typed error in its `data`. If `data` contains no typed error, the failure's code and text
 * determine the error. Only operations that declare `InvalidAddress` or `TokenNotFound` fail with these errors.
 */
export const makeReader = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, MethodClass, Request, Response, Failures>) => {
  const decodeData = Schema.decodeUnknownOption(Schema.Union([...upstreamFailures, ...operation.failures]))
  const decodeResult = decodeJson(operation.response)
  return (
    request: Request["Type"],
    upstream: string,
    answer: TokenRpcAnswer
  ): Effect.Effect<Response["Type"], Failures[number]["Type"] | CommonFailure> => {
    if (answer._tag === "Result") return decodeResult(upstream, answer.result)
    const address = member(request, "address")
    return Effect.fail(Option.getOrElse(
      decodeData(answer.data?.valueOrUndefined),
      () => failureOfAnswer(operation, Predicate.isString(address) ? address : undefined, upstream, answer)
    ))
  }
}
