/**
 * The token chain's REST and JSON-RPC protocols: validates and encodes calls, and decodes and classifies responses in
 * the token chain's envelope.
 *
 * Responses of both families of TON HTTP API servers (Python and C++), of node providers, and of an upstream gateway
 * decode to one shape. Results and additional members stay raw, so integers of any size are preserved. Responses are
 * encoded as standard clients expect: a truthy `ok` on success; text in `error` and no `result` on failure; always HTTP
 * 200.
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../encoding/Encoding.ts"
import {
  GatewayError,
  InvalidAddress,
  InvalidRequest,
  rpcCodes,
  TokenNotFound,
  UnsupportedMethod,
  upstreamFailures,
  UpstreamForbidden,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamUnavailable
} from "../errors/GatewayError.ts"
import type { CommonFailure, OutcomeUnknown, RequestFault, UpstreamMalformed } from "../errors/GatewayError.ts"
import * as JsonRpc from "../evm/EvmProtocol.ts"
import { member, rawMember, type RpcCall } from "../evm/EvmProtocol.ts"
import * as InfoProtocol from "../info/InfoOperations.ts"
import * as Operation from "../operations/Operation.ts"
import * as TonAddress from "./TokenData.ts"
import type { getTokenData, TokenRpcOperation, TokenSendOperation } from "./TokenOperations.ts"

/** Additional members of an envelope (`@extra`), raw. */
export type Extras = ReadonlyArray<readonly [name: string, raw: string]>

/** An upstream's response to one call: the result or the error, and the response's age in seconds. */
export type TokenRpcResponse =
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
const decodeEncodedError = Schema.decodeUnknownOption(GatewayError)
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

const errorResponse = (
  { retryAfter, status }: Pick<Operation.UpstreamResponse, "retryAfter" | "status">,
  failure: Failure,
  extras: Extras
): TokenRpcResponse => ({
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
export const readResponse = (
  response: Operation.UpstreamResponse
): Effect.Effect<TokenRpcResponse, UpstreamMalformed> => {
  const { json, status, text, upstream } = response
  const value = json.valueOrUndefined
  const succeeded = status >= 200 && status < 300
  if (!Predicate.isObject(value) || Array.isArray(value)) {
    return succeeded
      ? Effect.fail(
        Operation.malformed(upstream, Result.isFailure(json.value) ? json.value.failure.message : "Expected an object")
      )
      : Effect.succeed(
        errorResponse(response, { code: undefined, message: words(text.trim()), data: undefined }, [])
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
        ? errorResponse(response, decodeFailure(inner), extras)
        : { _tag: "Result", result: Json.parsed(result, inner), extras }
    )
  }
  const failed = !succeeded || ok === false || spans.has("error") || isTonlibError(value)
  return failed
    ? Effect.succeed(errorResponse(response, decodeFailure(value), Predicate.isBoolean(ok) ? extras : []))
    : Effect.fail(Operation.malformed(upstream, "Expected ok with a result, or an error"))
}

const envelope = (members: string, extras: Extras, rawId: string | undefined): string => {
  const more = extras.map(([name, raw]) => `,${JSON.stringify(name)}:${raw}`).join("")
  const id = rawId === undefined ? "" : `,"id":${rawId}`
  return `{${members}${more},"jsonrpc":"2.0"${id}}`
}

/** Encodes a response envelope for a caller; `rawId` is the raw text of the caller's ID. */
export const answerText = (rawId: string | undefined, response: TokenRpcResponse): string => {
  if (response._tag === "Result") return envelope(`"ok":true,"result":${response.result.text}`, response.extras, rawId)
  const data = response.data === undefined ? "" : `,"data":${response.data.text}`
  const failure = `"ok":false,"error":${JSON.stringify(response.message)},"code":${response.code}${data}`
  return envelope(failure, response.extras, rawId)
}

const encodeError = Schema.encodeSync(GatewayError)

/** Encodes the failure envelope of a typed error: its message, its JSON-RPC code, and the error itself as `data`. */
export const errorText = (error: GatewayError): (rawId: string | undefined) => string => {
  const response: TokenRpcResponse = {
    _tag: "Error",
    code: rpcCodes[error._tag],
    message: error.message,
    data: Json.write(encodeError(error)),
    retryAfter: undefined,
    extras: []
  }
  return (rawId) => answerText(rawId, response)
}

/** The time that TON HTTP API servers wait for a chain node, in milliseconds. After this time, they return HTTP 504. */
const SERVER_DEADLINE_MILLIS = 10_000

// codes of invalid requests and missing resources, for which a retry does not help
const invalidCodes = new Set([400, 404, 416, 422, -32600, -32602, -32700])

type Refused = Extract<TokenRpcResponse, { readonly _tag: "Error" }>

/** Maps the code and the text of a failure to a typed error. */
const failureOfResponse = (
  operation: Pick<Operation.Operation, "name" | "protocol">,
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
  Request extends Operation.AnyCodec,
  Response extends Operation.AnyCodec,
  Failures extends ReadonlyArray<Operation.AnyCodec>
>(operation: Operation.Operation<string, Operation.MethodClass, Request, Response, Failures>) => {
  const decodeData = Schema.decodeUnknownOption(Schema.Union([...upstreamFailures, ...operation.failures]))
  const decodeResult = Operation.decodeJson(operation.response)
  return (
    request: Request["Type"],
    upstream: string,
    response: TokenRpcResponse
  ): Effect.Effect<Response["Type"], Failures[number]["Type"] | CommonFailure> => {
    if (response._tag === "Result") return decodeResult(upstream, response.result)
    const address = member(request, "address")
    return Effect.fail(Option.getOrElse(
      decodeData(response.data?.valueOrUndefined),
      () => failureOfResponse(operation, Predicate.isString(address) ? address : undefined, upstream, response)
    ))
  }
}

/** The decoded parameters of a query string, in the order of the query string. */
export type Query = ReadonlyArray<readonly [name: string, value: string]>

/**
 * The encoding of a call. `rpc`: a JSON-RPC envelope. `query`: the query string of a GET. `body`: the body of a POST to
 * the method's path.
 */
export type Form = "rpc" | "query" | "body"

interface CallParams {
  readonly form: Form
  /** The params of the call, independent of its encoding. */
  readonly params: Json.Json
  /** The query string of a call in the form `query`. */
  readonly query?: Query
}

/** A read with validated params. */
export interface TokenRead extends CallParams {
  readonly operation: TokenRpcOperation | typeof getTokenData
}

/** A call with validated params that is sent at most once. */
export interface TokenOnce extends CallParams {
  readonly operation: TokenSendOperation
}

/** The backend of a token chain. Returns responses unchanged, whatever their HTTP status. */
export type TokenBackend = Operation.Backend<TokenRead, TokenOnce, Operation.UpstreamResponse>

const addressFault = (params: unknown, fault: RequestFault): Option.Option<InvalidAddress> => {
  const [key, ...deeper] = fault.path
  const value = key !== undefined && deeper.length === 0 && Predicate.hasProperty(params, key) ? params[key] : undefined
  return Predicate.isString(value)
    ? Option.filter(Result.getFailure(TonAddress.parse(value)), (error) => error.reason === fault.message)
    : Option.none()
}

const inParams = ({ message, path }: RequestFault): RequestFault => ({ path: ["params", ...path], message })

const refusal = (params: unknown, faults: ReadonlyArray<RequestFault>): InvalidRequest | InvalidAddress => {
  const addresses = faults.map((fault) => addressFault(params, fault))
  const [first] = addresses
  return first !== undefined && Option.isSome(first) && addresses.every(Option.isSome)
    ? first.value
    : Operation.invalidRequest(faults.map(inParams))
}

/**
 * Makes the function that validates an operation's params. The params `[]` mean that there are none.
 *
 * The function is as strict as newer TON HTTP API servers: it refuses non-empty arrays and unknown members. It fails
 * with `InvalidAddress` if only addresses are wrong, otherwise with `InvalidRequest`.
 */
export const requestCheck = <Request extends Operation.AnyCodec>(operation: { readonly request: Request }) => {
  const decode = Schema.decodeUnknownEffect(operation.request, { errors: "all", onExcessProperty: "error" })
  return (params: Json.Json): Effect.Effect<Request["Type"], InvalidRequest | InvalidAddress> =>
    Result.match(params.value, {
      onFailure: (fault) => Effect.fail(Operation.invalidRequest([inParams(fault)])),
      onSuccess: (value) => {
        const named = Array.isArray(value) && value.length === 0 ? {} : value
        return Effect.mapError(decode(named), (error) => refusal(named, Operation.decodeFaults(error)))
      }
    })
}

const knownCheck = memoize((operation: Operation.Operation) => requestCheck(operation))

/** Removes members that are `null`, because not every server treats them as absent. */
const withoutNulls = (params: Json.Json): Json.Json => {
  const value = params.valueOrUndefined
  if (!Predicate.isObject(value) || !Object.values(value).includes(null)) return params
  const { text } = params
  const given = [...Json.members(text).values()].filter(({ end, start }) => text.slice(start, end) !== "null")
  return Json.of(`{${given.map(({ end, keyStart }) => text.slice(keyStart, end)).join(",")}}`)
}

/** Validates the params of a call, and returns the params to send; see {@link requestCheck}. */
export const check = (
  operation: Operation.Operation,
  params: Json.Json
): Effect.Effect<Json.Json, InvalidRequest | InvalidAddress> =>
  Effect.map(knownCheck(operation)(params), () => withoutNulls(params))

type Params = { readonly [name: string]: unknown }

/** Converts a query string to params: every value is a string; a repeated name becomes a list of strings. */
const textParams = (query: Query): Params => {
  const params = new Map<string, string | ReadonlyArray<string>>()
  for (const [name, value] of query) {
    const before = params.get(name)
    params.set(name, before === undefined ? value : [...Predicate.isString(before) ? [before] : before, value])
  }
  return Object.fromEntries(params)
}

/** Python's spellings of booleans. */
const pythonWords: ReadonlyMap<string, boolean> = new Map([["True", true], ["False", false]])

const parseParam = (text: string): unknown => pythonWords.get(text) ?? Result.getOrElse(Json.parse(text), () => text)

/** Returns the names of the invalid params. */
const faulty = ({ errors }: InvalidRequest): ReadonlySet<unknown> => new Set(errors.map(({ path: [, name] }) => name))

/** Returns the params in which each string that `error` reports as invalid is parsed with the function `way`. */
const reread = (params: Params, error: InvalidRequest, way: (text: string) => unknown): Params => {
  const names = faulty(error)
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      Predicate.isString(value) && names.has(name) ? way(value) : value
    ])
  )
}

/**
 * Returns validated params and the query string to send. The query string contains `true` and `false` for booleans,
 * because all servers accept them.
 */
const toRequest = (query: Query, params: Params) => ({
  params: Json.write(params),
  query: query.map(([name, value]) => [name, Predicate.isBoolean(params[name]) ? String(params[name]) : value] as const)
})

/**
 * Parses and validates a query string. Returns its params, and the query string to send.
 *
 * A value is parsed as a number, a boolean or a list only if the method does not accept a string for that param.
 */
export const paramsOfQuery = (
  operation: TokenRpcOperation,
  query: Query
): Effect.Effect<{ readonly params: Json.Json; readonly query: Query }, InvalidRequest | InvalidAddress> => {
  const taken = (params: Params) => Effect.as(check(operation, Json.write(params)), toRequest(query, params))
  const texts = textParams(query)
  return Effect.catchTag(taken(texts), "InvalidRequest", (error) => {
    const typed = reread(texts, error, parseParam)
    return taken(typed).pipe(
      Effect.catchTag("InvalidRequest", (again) => taken(reread(typed, again, (text) => [text]))),
      // the error reports the strings as the caller sent them, and omits each string that is valid in its parsed form
      Effect.catchTag("InvalidRequest", (last) => {
        const wrong = error.errors.filter(({ path: [, name] }) => faulty(last).has(name))
        return Effect.fail(refusal(texts, wrong.map(({ message, path }) => ({ path: path.slice(1), message }))))
      })
    )
  })
}

/**
 * Encodes a query string. Percent encoding turns + into %2B, because servers decode a bare + as a space, which would
 * make an address invalid.
 */
const queryText = (query: Query): string =>
  query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&")

/** Returns the path of a call below the base URL. */
export const requestPath = ({ form, operation, query = [] }: TokenRead | TokenOnce): string => {
  if (form === "rpc") return "/api/v2/jsonRPC"
  const path = `/api/v2/${operation.name}`
  return form === "body" || query.length === 0 ? path : `${path}?${queryText(query)}`
}

// older servers refuse any array, including an empty one
const named = (params: string): string => params.trimStart().startsWith("[") ? "{}" : params

/** Encodes the body of a call: the params alone for the form `body`, otherwise a JSON-RPC envelope. */
export const encodeBody = ({ form, operation, params }: TokenRead | TokenOnce): Uint8Array =>
  form === "body" ? params.bytes : Json.encode(JsonRpc.requestText(1, operation.name, named(params.text)))

const around: ReadonlySet<string> = new Set(["ok", "id", "jsonrpc", "@extra"])

/** Returns whether an object has any member that describes the failure. */
const describesFailure = (members: ReadonlyMap<string, unknown>): boolean =>
  [...members.keys()].some((name) => !around.has(name))

/**
 * Returns whether a response body reports a failure in a server's own format; a gateway sends a problem document
 * instead. The HTTP status is not sufficient, because servers send 500 and 503 also for invalid requests.
 */
const isFailure = (text: string, members: ReadonlyMap<string, Json.Span>): boolean => {
  const ok = members.get("ok")
  return ok !== undefined && text.slice(ok.start, ok.end) === "false" && !members.has("_tag")
}

const judgePlain = InfoProtocol.judge({})

/** Classifies the response to a call. The call can have any {@link Form}. */
export const judge = (
  response: Operation.UpstreamResponse
): Operation.AttemptResult<Operation.UpstreamResponse, CommonFailure> => {
  const result = judgePlain(response)
  if (result._tag === "Answered" && response.status === 200) {
    const members = Json.members(response.text)
    if (members.size === 0) return Operation.mismatched(response.upstream, "Expected an object")
    return describesFailure(members) || isFailure(response.text, members)
      ? result
      : Operation.mismatched(response.upstream, "Expected ok with a result, or an error")
  }
  if (result._tag !== "Retryable" || result.fault !== "server_fault" || result.answer === undefined) return result
  return isFailure(response.text, Json.members(response.text))
    ? { ...result, fault: "declined", retryAfter: undefined }
    : result
}

/**
 * Returns whether the responses to a call are cached: JSON-RPC results and REST token data are cached; other REST
 * responses are not.
 */
const isCached = ({ form, operation }: TokenRead): boolean => form === "rpc" || operation.protocol === "token-rest"

/** Returns the part of a response that `isCacheable` inspects: the result of a JSON-RPC call, otherwise the whole document. */
const cacheableBody = ({ form }: TokenRead, { json, text }: Operation.UpstreamResponse): Json.Json => {
  const value = json.valueOrUndefined
  return form === "rpc" && Predicate.hasProperty(value, "ok") && value.ok === true && "result" in value
    ? Json.parsed(text, value.result)
    : json
}

/** The read protocol of a token chain. */
export const reads: Operation.ReadProtocol<TokenRead, Operation.UpstreamResponse, CommonFailure> = {
  key: ({ form, params, query = [] }) =>
    form === "query" ? `query ${queryText(query)}` : `${form} ${Json.canonical(params.text)}`,
  cachePolicy: (call, now) => {
    const operation: Operation.ReadOperation = call.operation
    return isCached(call) ? operation.cachePolicy?.(undefined, now) : undefined
  },
  isCacheable: (call, response) => {
    const operation: Operation.ReadOperation = call.operation
    return operation.isCacheable?.(undefined, cacheableBody(call, response)) ?? true
  },
  codec: InfoProtocol.codec,
  write: (call) => ({ body: call.form === "query" ? undefined : encodeBody(call), judge })
}

/**
 * Returns whether a contract or validator refused the message. Servers report such a refusal with HTTP 500, which they
 * also use for their own failures.
 */
const isRefusal = (message: string): boolean => /external message/iu.test(message)

/**
 * Decodes the response to a message that was sent at most once.
 *
 * Fails with `OutcomeUnknown` if the response is neither a result nor a definite refusal. A server's timeout is not a
 * refusal, because the message was already forwarded; other failures of a server are ambiguous.
 */
export const readOnce = (
  { advice }: Pick<Operation.OnceOperation, "advice">,
  response: Operation.UpstreamResponse
): Effect.Effect<TokenRpcResponse, OutcomeUnknown> => {
  const unknown = () => Effect.fail(Operation.outcomeUnknown(response, "message", { advice }))
  return Effect.matchEffect(readResponse(response), {
    onFailure: unknown,
    onSuccess: (rpcResponse) =>
      rpcResponse._tag === "Error" && rpcResponse.data === undefined &&
        (rpcResponse.code >= 500 || response.status >= 500) &&
        !isRefusal(rpcResponse.message)
        ? unknown()
        : Effect.succeed(rpcResponse)
  })
}
