/** The token chain's REST and JSON-RPC protocols: validates and encodes calls, and classifies responses. */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../encoding/Json.ts"
import * as Utf8 from "../encoding/Utf8.ts"
import type { CommonFailure } from "../errors/GatewayError.ts"
import type { InvalidAddress, InvalidRequest, RequestFault } from "../errors/RequestError.ts"
import type { OutcomeUnknown } from "../errors/UpstreamError.ts"
import * as InfoProtocol from "../info/InfoProtocol.ts"
import * as JsonRpc from "../operations/JsonRpc.ts"
import {
  type AnyCodec,
  decodeFaults,
  invalidRequest,
  type OnceOperation,
  type Operation
} from "../operations/Operation.ts"
import type { AttemptResult, Backend, ReadOperation, ReadProtocol } from "../operations/Protocol.ts"
import { mismatched, outcomeUnknown } from "../operations/Protocol.ts"
import type { UpstreamResponse } from "../operations/UpstreamResponse.ts"
import type { getTokenData, TokenRpcOperation, TokenSendOperation } from "./TokenOperations.ts"
import * as TokenRpc from "./TokenRpc.ts"
import * as TonAddress from "./TonAddress.ts"

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
export type TokenBackend = Backend<TokenRead, TokenOnce, UpstreamResponse>

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
    : invalidRequest(faults.map(inParams))
}

/**
 * Makes the function that validates an operation's params. The params `[]` mean that there are none.
 *
 * The function is as strict as newer TON HTTP API servers: it refuses non-empty arrays and unknown members. It fails
 * with `InvalidAddress` if only addresses are wrong, otherwise with `InvalidRequest`.
 */
export const requestCheck = <Request extends AnyCodec>(operation: { readonly request: Request }) => {
  const decode = Schema.decodeUnknownEffect(operation.request, { errors: "all", onExcessProperty: "error" })
  return (params: Json.Json): Effect.Effect<Request["Type"], InvalidRequest | InvalidAddress> =>
    Result.match(params.value, {
      onFailure: (fault) => Effect.fail(invalidRequest([inParams(fault)])),
      onSuccess: (value) => {
        const named = Array.isArray(value) && value.length === 0 ? {} : value
        return Effect.mapError(decode(named), (error) => refusal(named, decodeFaults(error)))
      }
    })
}

const knownCheck = memoize((operation: Operation) => requestCheck(operation))

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
  operation: Operation,
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
const asked = (query: Query, params: Params) => ({
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
  const taken = (params: Params) => Effect.as(check(operation, Json.write(params)), asked(query, params))
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
  form === "body" ? params.bytes : Utf8.encode(JsonRpc.requestText(1, operation.name, named(params.text)))

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
  response: UpstreamResponse
): AttemptResult<UpstreamResponse, CommonFailure> => {
  const result = judgePlain(response)
  if (result._tag === "Answered" && response.status === 200) {
    const members = Json.members(response.text)
    if (members.size === 0) return mismatched(response.upstream, "Expected an object")
    return describesFailure(members) || isFailure(response.text, members)
      ? result
      : mismatched(response.upstream, "Expected ok with a result, or an error")
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
const cacheableBody = ({ form }: TokenRead, { json, text }: UpstreamResponse): Json.Json => {
  const value = json.valueOrUndefined
  return form === "rpc" && Predicate.hasProperty(value, "ok") && value.ok === true && "result" in value
    ? Json.parsed(text, value.result)
    : json
}

/** The read protocol of a token chain. */
export const reads: ReadProtocol<TokenRead, UpstreamResponse, CommonFailure> = {
  key: ({ form, params, query = [] }) =>
    form === "query" ? `query ${queryText(query)}` : `${form} ${Json.canonical(params.text)}`,
  cachePolicy: (call, now) => {
    const operation: ReadOperation = call.operation
    return isCached(call) ? operation.cachePolicy?.(undefined, now) : undefined
  },
  isCacheable: (call, response) => {
    const operation: ReadOperation = call.operation
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
  { advice }: Pick<OnceOperation, "advice">,
  response: UpstreamResponse
): Effect.Effect<TokenRpc.TokenRpcAnswer, OutcomeUnknown> => {
  const unknown = () => Effect.fail(outcomeUnknown(response, "message", { advice }))
  return Effect.matchEffect(TokenRpc.readAnswer(response), {
    onFailure: unknown,
    onSuccess: (answer) =>
      answer._tag === "Error" && answer.data === undefined && (answer.code >= 500 || response.status >= 500) &&
        !isRefusal(answer.message)
        ? unknown()
        : Effect.succeed(answer)
  })
}
