/**
 * Declarations of operations: each upstream call is declared once, next to its schemas.
 *
 * Routing, validation, the at-most-once rule, availability errors, rate limits, metric labels, the typed services, the
 * client and the documentation are all derived from these declarations.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as SchemaAST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Struct from "effect/Struct"
import { CurrentCaller } from "../Caller.ts"
import type { Scope } from "../Caller.ts"
import type { Chain } from "../Chain.ts"
import * as Json from "../encoding/Json.ts"
import { NotPermitted } from "../errors/CallerError.ts"
import { replaceSchemaNames } from "../errors/ErrorMessages.ts"
import type { WrapReason } from "../errors/GatewayError.ts"
import { InvalidRequest, type RequestFault, type StateBlock, UnavailableOnNode } from "../errors/RequestError.ts"
import type { UpstreamResponse } from "./UpstreamResponse.ts"

/**
 * How often a call can be sent. A `read` can be repeated. A `once` call is not sent again after bytes of it may have
 * reached the upstream.
 */
export type MethodClass = "read" | "once"

/** The kind of upstream that serves an operation: the venue's official API or a node. */
export type Source = "official-api" | "node"

/** The wire protocol of a call, which determines its route. */
export type Protocol = "exchange" | "info" | "evm" | "token-rest" | "token-rpc" | "layer2"

/** A schema that decodes and encodes without services. */
export type AnyCodec = Schema.ConstraintCodec<unknown, unknown>

/** The upstream cost of a call. */
export interface Cost {
  /** Weight in the official API's rate limit; 0 for an operation that only nodes serve. */
  readonly weight: number
  /** The number of response rows that add 1 to the weight (for candles, the venue adds 1 for every 60 rows). */
  readonly rowsPerWeight?: number
  /** Maximum number of response rows, if the rows add to the weight. */
  readonly maxRows?: number
  /**
   * The number of batch entries in a request that add 1 to the weight (the weight of n entries is 1 + floor(n / 40) at
   * the venue).
   */
  readonly entriesPerWeight?: number
  /** The cost of the call in request units, the unit of a node provider's plan. */
  readonly requestUnits: number
}

/** A response that always means one typed error, regardless of its HTTP status. */
export interface DeclaredRefusal<Request, Failure> {
  readonly matches: (answer: UpstreamResponse) => boolean
  // a method, so that an operation with any request type is assignable to `Operation`
  failure(request: Request, answer: UpstreamResponse): Failure
}

/** The caching times of a response, in milliseconds (RFC 9111, RFC 5861). */
export interface CachePolicy {
  /** How long the response is served without an upstream request. */
  readonly fresh: number
  /** The age from which a request also refreshes the response in the background. Default: never. */
  readonly refreshAfter?: number
  /** How long after `fresh` the response is served, with its age, if the upstream fails. */
  readonly staleIfError: number
  /**
   * How long after `fresh` the response is served, with its age, while the rate limit is exhausted. Default: not at
   * all.
   */
  readonly staleIfLimited?: number
  /** Whether a cached response remains valid after a change to an account whose state it contains. */
  readonly isFinal?: true
}

/** The policy of a response that never changes: it is cached until it is evicted. */
export const cachedForGood: CachePolicy = { fresh: Duration.toMillis("365 days"), staleIfError: 0, isFinal: true }

/** The caching of a read's responses. Equal concurrent calls are coalesced even without caching. */
export interface Caching<Request> {
  // methods, so that an operation with any request type is assignable to `Operation`
  /**
   * Returns the cache policy of the response to a request that is sent at `now`; `undefined` if the response is not
   * cached.
   */
  cachePolicy?(request: Request, now: number): CachePolicy | undefined
  /** Returns the cache policy for callers that accept responses up to one block old. */
  cachePolicyOnRequest?(request: Request, now: number): CachePolicy | undefined
  /**
   * Returns whether a response (for JSON-RPC: its `result`) is cacheable: it is not an error, and it is the response to
   * this request.
   */
  isCacheable?(request: Request, answer: Json.Json): boolean
}

/** The declaration of one upstream call. */
export interface Operation<
  Name extends string = string,
  Class extends MethodClass = MethodClass,
  Request extends AnyCodec = AnyCodec,
  Response extends AnyCodec = AnyCodec,
  Failures extends ReadonlyArray<AnyCodec> = ReadonlyArray<AnyCodec>
> extends Caching<Request["Type"]> {
  /** The upstream's name for the call: an action type, info type or JSON-RPC method. */
  readonly name: Name
  readonly class: Class
  readonly chain: Chain
  readonly protocol: Protocol
  /** The effect or result of the call, in one sentence for the documentation. */
  readonly summary: string
  /** The upstream kinds that serve the operation, in order of preference. */
  readonly sources: ReadonlyArray<Source>
  /**
   * Whether the official API and nodes respond differently. If they do, there is no failover between them: calls to the
   * gateway's own routes use the official API, and calls to the node routes use nodes.
   */
  readonly sourceOfSurface?: true
  readonly cost: Cost
  /**
   * Whether every healthy upstream URL responds quickly to any request, so that a timeout indicates a fault of that
   * URL.
   */
  readonly cheap?: true
  /** The schema of the request (for JSON-RPC: `params`). */
  readonly request: Request
  /** The schema of the response (for JSON-RPC: `result`). */
  readonly response: Response
  /** The errors of this operation in addition to those of every call (`CommonFailure`). */
  readonly failures: Failures
  /** The block parameter of a method that reads state: its position, and the supported values. */
  readonly blockParam?: { readonly position: number; readonly supported: ReadonlyArray<StateBlock> }
  /**
   * Counts the elements of a list response in the received chunks, without joining, decoding or parsing the chunks.
   * Returns `undefined` if the format is not recognized.
   *
   * Intended for long responses with a fixed format. Every text that is recognized must also decode.
   */
  readonly recognized?: (pieces: ReadonlyArray<Uint8Array>) => number | undefined
  // a method, so that an operation with any request type is assignable to `Operation`
  /**
   * Returns the maximum number of rows in the response to a request sent at `now`, if the rows add to the weight.
   * Default: `cost.maxRows`.
   */
  mostRows?(request: Request["Type"], now: number): number
  /** A response that means an error, regardless of its HTTP status. */
  readonly refusal?: DeclaredRefusal<Request["Type"], Failures[number]["Type"]>
  /**
   * Returns whether a response is relayed unchanged, without an attempt at a different upstream URL, regardless of its
   * HTTP status.
   */
  readonly isFinal?: (answer: UpstreamResponse) => boolean
  /**
   * Whether request and response are relayed without decoding. If so, two requests are equal only if their texts are
   * equal.
   */
  readonly verbatim?: true
  /** The schema that validates a relayed request, if it is less strict than `request`. */
  readonly relayedRequest?: AnyCodec
  /** A request that a new sandbox serves. The API reference shows it, and tests send it. */
  readonly example?: Request["Encoded"]
}

/** The declaration of a call that is sent at most once. */
export interface OnceOperation<
  Name extends string = string,
  Request extends AnyCodec = AnyCodec,
  Response extends AnyCodec = AnyCodec,
  Failures extends ReadonlyArray<AnyCodec> = ReadonlyArray<AnyCodec>
> extends Operation<Name, "once", Request, Response, Failures> {
  /** The advice for a call with an unknown outcome. */
  readonly advice: string
}

/** The decoded request of an operation. */
export type Request<O extends Operation> = O["request"]["Type"]
/** The decoded response of an operation. */
export type Response<O extends Operation> = O["response"]["Type"]
/** The additional errors of an operation. */
export type Failure<O extends Operation> = O["failures"][number]["Type"]

/** The arguments of a typed method: none if the request has no members; optional if all its members are optional. */
export type Arguments<Request> = keyof Request extends never ? []
  : Record<never, never> extends Request ? [request?: Request]
  : [request: Request]

/** The typed method of an operation; the method can also fail with `E`. */
export type Method<O extends Operation, E, R = never> = (
  ...args: Arguments<Request<O>>
) => Effect.Effect<Response<O>, WrapReason<Failure<O> | E>, R>

/** The typed methods of a table of operations. */
export type Methods<Operations extends { readonly [name: string]: Operation }, E, R = never> = {
  readonly [Name in keyof Operations]: Method<Operations[Name], E, R>
}

/** The type-level function from an operation to its typed method, for `Struct.map`. */
export interface MethodOf<E, R> extends Struct.Lambda {
  <O extends Operation<string, "read">>(operation: O): Method<O, E, R>
  readonly "~lambda.out": Method<Extract<this["~lambda.in"], Operation>, E, R>
}

/** Returns a function that makes the typed method of any read, with the type that `Struct.map` requires. */
export const typedMethodMapper = <E, R = never>(
  make: (operation: Operation<string, "read">) => Method<Operation, E, R>
) => Struct.lambda<MethodOf<E, R>>(make)

/** Declares a read: it can be retried, hedged, coalesced and cached. */
export const read = <
  const Name extends string,
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(
  declaration: Omit<Operation<Name, "read", Request, Response, Failures>, "class">
): Operation<Name, "read", Request, Response, Failures> => ({ ...declaration, class: "read" })

/** Declares a call that is sent at most once. Its response is never shared between callers. */
export const once = <
  const Name extends string,
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(
  declaration: Omit<OnceOperation<Name, Request, Response, Failures>, "class" | keyof Caching<unknown>>
): OnceOperation<Name, Request, Response, Failures> => ({ ...declaration, class: "once" })

/**
 * Returns a function `isCacheable` that accepts the responses that `schema` decodes. The function refuses a truncated
 * response, and refuses `null` unless `schema` allows it.
 */
export const decodes = (schema: AnyCodec): (request: unknown, answer: Json.Json) => boolean => {
  const decode = Schema.decodeUnknownOption(schema)
  return (_request, answer) => Result.isSuccess(answer.value) && Option.isSome(decode(answer.value.success))
}

/** The group of routes that received a request: the gateway's own routes, or the routes of a node provider. */
export type Surface = "gateway" | "node"

/** Makes the error for an operation that was requested on the node routes, but that no node serves. */
export const unavailableOnNode = (operation: Operation): UnavailableOnNode =>
  new UnavailableOnNode({
    operation: operation.name,
    availableOn: operation.sources.filter((source) => source !== "node"),
    detail: `Only the official API serves ${operation.name}; nodes do not`
  })

/**
 * Returns the sources that serve an operation on the gateway's own routes or on the node routes. On the node routes,
 * the list is empty if no node serves the operation; the call then fails with `UnavailableOnNode`.
 */
export const sourcesOn = (operation: Operation, surface: Surface): ReadonlyArray<Source> =>
  operation.sources.filter((source) =>
    surface === "node" ? source === "node" : operation.sourceOfSurface !== true || source === "official-api"
  )

/** The permissions that a request needs. */
export interface Need {
  readonly chain: Chain
  readonly class: "read" | "sign" | "inspect"
  /** The upstream's name of the operation; absent if no upstream is called. */
  readonly name?: string
  /** Whether the gateway recovers the signer, so that the list `signers` of a scope can be enforced. */
  readonly recoversSigner?: true
}

/**
 * Returns the permissions that a call needs. `passedThrough` is the request's own type, for an action or query whose
 * operation covers several types. Default: the operation's name.
 */
export const operationNeed = (
  { chain, class: methodClass, name, protocol }: Pick<Operation, "chain" | "class" | "name" | "protocol">,
  passedThrough: string = name
): Need => ({
  chain,
  class: methodClass === "once" ? "sign" : "read",
  name: passedThrough,
  ...(protocol === "exchange" ? { recoversSigner: true } : {})
})

const refusal = (missing: NotPermitted["missing"], needed: string): NotPermitted =>
  new NotPermitted({
    missing,
    needed,
    detail: missing === "signers"
      ? `This caller is allowed to send only what its signers signed, but the gateway cannot recover the signer of ${needed}: use a key whose scope does not list signers`
      : `The list ${missing} in the scope of this caller does not contain ${needed}`
  })

/** Returns the error for a request outside a scope; `undefined` if the scope permits the request. */
export const notPermitted = (scope: Scope, need: Need): NotPermitted | undefined => {
  const { chains, classes, operations, signers } = scope
  if (chains !== undefined && !chains.includes(need.chain)) return refusal("chains", need.chain)
  if (classes !== undefined && !classes.includes(need.class)) return refusal("classes", need.class)
  if (need.name === undefined) return undefined
  if (operations !== undefined && !operations.includes(need.name)) return refusal("operations", need.name)
  return signers !== undefined && need.class === "sign" && need.recoversSigner !== true
    ? refusal("signers", need.name)
    : undefined
}

/** Fails with `NotPermitted` if the scope of the {@link CurrentCaller} does not permit a request. */
export const permitted = (need: Need): Effect.Effect<void, NotPermitted> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const refused = notPermitted(Context.get(context, CurrentCaller).scope, need)
    return refused === undefined ? Exit.void : Exit.fail(refused)
  })

/** Returns the weight, in the official API's rate limit, of a call whose response has `rows` rows. */
export const responseWeight = (operation: Pick<Operation, "cost">, rows: number): number =>
  operation.cost.weight +
  (operation.cost.rowsPerWeight === undefined ? 0 : Math.ceil(rows / operation.cost.rowsPerWeight))

/** Returns the maximum weight of one call. */
export const worstWeight = (operation: Pick<Operation, "cost">): number =>
  responseWeight(operation, operation.cost.maxRows ?? 0)

/** Returns the maximum cost of a request: the cost if the response has the maximum number of rows. */
export const requestCost = <Request>(
  operation: { readonly cost: Cost; mostRows?(request: Request, now: number): number },
  request: Request,
  now: number
): Cost =>
  operation.mostRows === undefined
    ? operation.cost
    : { ...operation.cost, maxRows: operation.mostRows(request, now) }

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const segment = (key: PropertyKey | { readonly key: PropertyKey }): string | number => {
  const plain = typeof key === "object" ? key.key : key
  return typeof plain === "number" ? plain : String(plain)
}

const at = (path: ReadonlyArray<string | number>): string => path.length === 0 ? "the request" : path.join(".")

// limits the size of the error: a caller does not need more mistakes, or the whole text of a long key
const MAX_FAULTS = 16
const MAX_MESSAGE = 240
const MAX_SEGMENT = 64

const cut = (segment: string | number): string | number =>
  typeof segment === "number" ? segment : segment.slice(0, MAX_SEGMENT)

/** Makes the error with all mistakes in a request, the first one in its `detail`. */
export const invalidRequest = (faults: ReadonlyArray<RequestFault>): InvalidRequest => {
  const errors = faults.slice(0, MAX_FAULTS).map(({ message, path }) => ({
    path: path.map(cut),
    message: message.slice(0, MAX_MESSAGE)
  }))
  const first = errors[0]
  return new InvalidRequest({
    errors,
    ...(first === undefined ? {} : { detail: `${at(first.path)}: ${first.message}` })
  })
}

/**
 * Converts a decoding error to a list of the mistakes in the request. The path of each mistake begins with `prefix`,
 * the path of the decoded value in the request.
 */
export const decodeFaults = (
  error: Schema.SchemaError,
  prefix: ReadonlyArray<string | number> = []
): ReadonlyArray<RequestFault> =>
  format(error.issue).issues.map((issue) => ({
    path: [...prefix, ...(issue.path ?? []).map(segment)],
    message: replaceSchemaNames(issue.message)
  }))

/** Makes a decoder of parsed values. `prefix` is the path of the value in the request, for the paths of mistakes. */
export const decodeValue = <S extends AnyCodec>(
  schema: S,
  prefix: ReadonlyArray<string | number> = [],
  options?: SchemaAST.ParseOptions
) => {
  const decode = Schema.decodeUnknownResult(schema, { errors: "all", ...options })
  return (value: unknown): Effect.Effect<S["Type"], InvalidRequest> =>
    Result.match(decode(value), {
      onFailure: (error) => Effect.fail(invalidRequest(decodeFaults(error, prefix))),
      onSuccess: Effect.succeed
    })
}

/**
 * Makes an encoder of requests. The encoder fails with `InvalidRequest` if a value is outside the range of its type.
 *
 * The function `write` converts an encoded request to JSON text.
 */
export const encodeRequest = <S extends AnyCodec>(
  schema: S,
  prefix: ReadonlyArray<string | number> = [],
  write: (encoded: unknown) => Json.Json = Json.write
) => {
  const encode = Schema.encodeUnknownEffect(schema, { errors: "all" })
  return (request: S["Type"] = {}): Effect.Effect<Json.Json, InvalidRequest> =>
    Effect.mapBoth(encode(request), {
      onFailure: (error) => invalidRequest(decodeFaults(error, prefix)),
      onSuccess: write
    })
}

/** Parses a request strictly: JSON, no duplicate keys, bounded nesting and number of values. */
export const parseRequest = (text: string, bytes?: Uint8Array): Effect.Effect<Json.Json, InvalidRequest> =>
  Result.match(Json.parseStrict(text), {
    onFailure: (refusal) => Effect.fail(invalidRequest([refusal])),
    onSuccess: (value) => Effect.succeed(Json.parsed(text, value, bytes))
  })
