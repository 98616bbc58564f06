/** The token chain's REST and JSON-RPC: how calls are checked and written, and how responses are judged. */
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

/** The members of a query in their order, decoded. */
export type Query = ReadonlyArray<readonly [name: string, value: string]>

/** How a call is written: in a JSON-RPC envelope, as the query of a GET, or as the body of a POST to the method's path. */
export type Form = "rpc" | "query" | "body"

interface CallParams {
  readonly form: Form
  /** What the call names, whichever way it is written. */
  readonly params: Json.Json
  /** The query of a call that is written as one. */
  readonly query?: Query
}

/** A read whose params were checked. */
export interface TokenRead extends CallParams {
  readonly operation: TokenRpcOperation | typeof getTokenData
}

/** A call that was checked and is sent at most once. */
export interface TokenOnce extends CallParams {
  readonly operation: TokenSendOperation
}

/** Where the calls of a token chain go; responses come as they are, whatever their status. */
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
 * The check of an operation's params; `[]` stands for no params.
 *
 * As strict as the newer servers: other arrays and unknown members are refused. Params whose only faults are addresses fail
 * with `InvalidAddress`, all others with `InvalidRequest`.
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

/** Params without the members that are `null`: not every server takes that for a member that is left out. */
const withoutNulls = (params: Json.Json): Json.Json => {
  const value = params.valueOrUndefined
  if (!Predicate.isObject(value) || !Object.values(value).includes(null)) return params
  const { text } = params
  const given = [...Json.members(text).values()].filter(({ end, start }) => text.slice(start, end) !== "null")
  return Json.of(`{${given.map(({ end, keyStart }) => text.slice(keyStart, end)).join(",")}}`)
}

/** Checks the params of a call, and gives them as they are sent; see {@link requestCheck}. */
export const check = (
  operation: Operation,
  params: Json.Json
): Effect.Effect<Json.Json, InvalidRequest | InvalidAddress> =>
  Effect.map(knownCheck(operation)(params), () => withoutNulls(params))

type Params = { readonly [name: string]: unknown }

/** Every value is a text; a name that comes more than once has a list of texts. */
const textParams = (query: Query): Params => {
  const params = new Map<string, string | ReadonlyArray<string>>()
  for (const [name, value] of query) {
    const before = params.get(name)
    params.set(name, before === undefined ? value : [...Predicate.isString(before) ? [before] : before, value])
  }
  return Object.fromEntries(params)
}

/** How Python writes a boolean. */
const pythonWords: ReadonlyMap<string, boolean> = new Map([["True", true], ["False", false]])

const parseParam = (text: string): unknown => pythonWords.get(text) ?? Result.getOrElse(Json.parse(text), () => text)

/** The params at fault, by name. */
const faulty = ({ errors }: InvalidRequest): ReadonlySet<unknown> => new Set(errors.map(({ path: [, name] }) => name))

/** The params, with the texts at fault read in another way. */
const reread = (params: Params, error: InvalidRequest, way: (text: string) => unknown): Params => {
  const names = faulty(error)
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      Predicate.isString(value) && names.has(name) ? way(value) : value
    ])
  )
}

/** Params that were checked, and the query as it is sent: servers do not agree on how else a boolean is written. */
const asked = (query: Query, params: Params) => ({
  params: Json.write(params),
  query: query.map(([name, value]) => [name, Predicate.isBoolean(params[name]) ? String(params[name]) : value] as const)
})

/**
 * The params that a query stands for, checked, and the query that is sent for them.
 *
 * A value is a text; it is read as a number, a boolean or a list only where the method takes no text there.
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
      // the caller recognizes the faults of the texts; a text that has another valid reading has no fault
      Effect.catchTag("InvalidRequest", (last) => {
        const wrong = error.errors.filter(({ path: [, name] }) => faulty(last).has(name))
        return Effect.fail(refusal(texts, wrong.map(({ message, path }) => ({ path: path.slice(1), message }))))
      })
    )
  })
}

/** Percent encoding turns + into %2B: servers read a bare + as a space, which makes an address wrong. */
const queryText = (query: Query): string =>
  query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&")

/** The path of a call below the base URL. */
export const requestPath = ({ form, operation, query = [] }: TokenRead | TokenOnce): string => {
  if (form === "rpc") return "/api/v2/jsonRPC"
  const path = `/api/v2/${operation.name}`
  return form === "body" || query.length === 0 ? path : `${path}?${queryText(query)}`
}

// servers of the older family refuse any array, an empty one too
const named = (params: string): string => params.trimStart().startsWith("[") ? "{}" : params

/** The body of a call that is not written as a query. */
export const encodeBody = ({ form, operation, params }: TokenRead | TokenOnce): Uint8Array =>
  form === "body" ? params.bytes : Utf8.encode(JsonRpc.requestText(1, operation.name, named(params.text)))

const around: ReadonlySet<string> = new Set(["ok", "id", "jsonrpc", "@extra"])

/** Whether an object says more than that it is one. */
const saysSomething = (members: ReadonlyMap<string, unknown>): boolean =>
  [...members.keys()].some((name) => !around.has(name))

/** A failure in the servers' own words: they answer wrong requests with 500 and 503 as well. A gateway says it as a problem. */
const isFailure = (text: string, members: ReadonlyMap<string, Json.Span>): boolean => {
  const ok = members.get("ok")
  return ok !== undefined && text.slice(ok.start, ok.end) === "false" && !members.has("_tag")
}

const judgePlain = InfoProtocol.judge({})

/** Judges a response of any of the forms. */
export const judge = (
  response: UpstreamResponse
): AttemptResult<UpstreamResponse, CommonFailure> => {
  const result = judgePlain(response)
  if (result._tag === "Answered" && response.status === 200) {
    const members = Json.members(response.text)
    if (members.size === 0) return mismatched(response.upstream, "Expected an object")
    return saysSomething(members) || isFailure(response.text, members)
      ? result
      : mismatched(response.upstream, "Expected ok with a result, or an error")
  }
  if (result._tag !== "Retryable" || result.fault !== "server_fault" || result.answer === undefined) return result
  return isFailure(response.text, Json.members(response.text))
    ? { ...result, fault: "declined", retryAfter: undefined }
    : result
}

/** Operations cache the results of their JSON-RPC and the token data over REST, not the bodies of other REST calls. */
const isCached = ({ form, operation }: TokenRead): boolean => form === "rpc" || operation.protocol === "token-rest"

/** What `isCacheable` looks at: the result of a JSON-RPC call, the whole document otherwise. */
const cacheableBody = ({ form }: TokenRead, { json, text }: UpstreamResponse): Json.Json => {
  const value = json.valueOrUndefined
  return form === "rpc" && Predicate.hasProperty(value, "ok") && value.ok === true && "result" in value
    ? Json.parsed(text, value.result)
    : json
}

/** The reads of a token chain. */
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

/** A contract or a validator refused the message: servers say so with 500, which they use for their own faults too. */
const isRefusal = (message: string): boolean => /external message/iu.test(message)

/**
 * Reads the response to a message that was sent at most once.
 *
 * Fails with `OutcomeUnknown` unless the response is a result or a certain refusal: a server's time-out comes after it has
 * passed the message on, and its other faults do not say.
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
