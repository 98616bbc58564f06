/**
 * An operation is data: each upstream call is declared once, next to its schemas.
 *
 * Routing, validation, the once rule, availability errors, rate limits, metric labels, the typed services, the client and the
 * documents are all read from these declarations; nothing about an operation is written twice.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Struct from "effect/Struct"
import { CurrentCaller } from "../Caller.ts"
import type { Scope } from "../Caller.ts"
import type { Chain } from "../Chain.ts"
import * as Json from "../encoding/Json.ts"
import { NotPermitted } from "../errors/CallerError.ts"
import { inWords } from "../errors/ErrorMessages.ts"
import type { WrapReason } from "../errors/GatewayError.ts"
import { InvalidRequest, type RequestFault, type StateBlock, UnavailableOnNode } from "../errors/RequestError.ts"
import * as Continuation from "./Continuation.ts"
import type { UpstreamResponse } from "./UpstreamResponse.ts"

/**
 * How often a call may be sent: a `read` may be sent again, a `once` call never after a byte may have reached the
 * upstream.
 */
export type MethodClass = "read" | "once"

/** Which kind of address serves an operation: the venue's official API or a node. */
export type Source = "official-api" | "node"

/** How a call looks on the wire, and so which route of ours takes it. */
export type Protocol = "exchange" | "info" | "evm" | "token-rest" | "token-rpc" | "layer2"

/** A schema that needs no services to decode or encode. */
export type AnyCodec = Schema.ConstraintCodec<unknown, unknown>

/** What a call costs its upstream. */
export interface Cost {
  /** Weight in the official API's rate limit; 0 for an operation that only nodes serve. */
  readonly weight: number
  /** Rows of the answer that cost one weight more (the venue bills candles by the 60). */
  readonly rowsPerWeight?: number
  /** Rows that an answer holds at most, where rows cost weight. */
  readonly maxRows?: number
  /** Entries of a batch in the request that cost one weight more (the venue bills a batch of n as 1 + n / 40, rounded down). */
  readonly entriesPerWeight?: number
  /** Request units of a node provider's plan. */
  readonly requestUnits: number
}

/** An answer that is final and means a typed error, whatever its status says. */
export interface DeclaredRefusal<Request, Failure> {
  readonly matches: (answer: UpstreamResponse) => boolean
  // a method, so that an operation of any request is an `Operation`
  failure(request: Request, answer: UpstreamResponse): Failure
}

/** How long one answer of a read may be cached, in milliseconds (RFC 9111, RFC 5861). */
export interface CachePolicy {
  /** For so long it is served without asking the upstream. */
  readonly fresh: number
  /** From this age on a request for it also refreshes it in the background; never when not given. */
  readonly refreshAfter?: number
  /** For so long after `fresh` it is served, with its age, when the upstream fails. */
  readonly staleIfError: number
  /** For so long after `fresh` it is served, with its age, while the rate limit is used up; not at all when not given. */
  readonly staleIfLimited?: number
}

/** What a read allows to be cached of its responses. Equal calls that are under way are coalesced in any case. */
export interface Caching<Request> {
  // methods, so that an operation of any request is an `Operation`
  /** How long the answer to a request that is sent at `now` may be cached; not at all when undefined. */
  cachePolicy?(request: Request, now: number): CachePolicy | undefined
  /** The same for a caller who asked for an answer that may be one block old. */
  cachePolicyOnRequest?(request: Request, now: number): CachePolicy | undefined
  /** Whether an answer (for JSON-RPC: its `result`) may be cached: no error, no answer to another request. */
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
  /** The upstream's own name of the call: action type, info type or JSON-RPC method. */
  readonly name: Name
  readonly class: Class
  readonly chain: Chain
  readonly protocol: Protocol
  /** One sentence for the documents. */
  readonly summary: string
  /** Who serves it, in order of preference. */
  readonly sources: ReadonlyArray<Source>
  /** Whether the sources respond differently. Each surface then uses its own source, without failover to the other. */
  readonly sourceOfSurface?: true
  readonly cost: Cost
  /**
   * Whether every healthy address responds quickly whatever the request contains, so that a timeout indicates a fault of the
   * address and not of the query.
   */
  readonly cheap?: true
  /** The request as the wire carries it (for JSON-RPC: `params`), decoding to domain types. */
  readonly request: Request
  /** The answer as the wire carries it (for JSON-RPC: `result`), decoding to domain types. */
  readonly response: Response
  /** Errors that this operation has besides those that every call can end in (`CommonFailure`). */
  readonly failures: Failures
  /** The block parameter of a method that reads state: its position, and the supported values. */
  readonly blockParam?: { readonly position: number; readonly supported: ReadonlyArray<StateBlock> }
  /**
   * Returns the length of a list that is recognized from its pieces, without joining, decoding or parsing
   * them.
   *
   * For responses that are long and always spelled the same; every text that is recognized has to decode.
   */
  readonly recognized?: (pieces: ReadonlyArray<Uint8Array>) => number | undefined
  // a method, so that an operation of any request is an `Operation`
  /** Rows that the answer to a request which is sent at `now` can hold, where rows cost weight; `cost.maxRows` when not given. */
  mostRows?(request: Request["Type"], now: number): number
  /** An answer that means something else than its status says. */
  readonly refusal?: DeclaredRefusal<Request["Type"], Failures[number]["Type"]>
  /** Whether an answer is the upstream's last word, whatever its status says. */
  readonly isFinal?: (answer: UpstreamResponse) => boolean
  /** Neither request nor answer is decoded on the way, so two requests are the same only if their texts are. */
  readonly verbatim?: true
  /** The schema that a relayed request is checked against, if it is weaker than `request`. */
  readonly relayedRequest?: AnyCodec
  /** A request to which a new sandbox returns a result. The reference shows it, and tests send it. */
  readonly example?: Request["Encoded"]
}

/** The declaration of a call that is sent at most once. */
export interface OnceOperation<
  Name extends string = string,
  Request extends AnyCodec = AnyCodec,
  Response extends AnyCodec = AnyCodec,
  Failures extends ReadonlyArray<AnyCodec> = ReadonlyArray<AnyCodec>
> extends Operation<Name, "once", Request, Response, Failures> {
  /** The advice to a caller whose outcome is unknown. */
  readonly advice: string
}

/** Domain type of an operation's request. */
export type Request<O extends Operation> = O["request"]["Type"]
/** Domain type of an operation's response. */
export type Response<O extends Operation> = O["response"]["Type"]
/** Errors that this operation has besides the common ones. */
export type Failure<O extends Operation> = O["failures"][number]["Type"]

/** The arguments of an operation's typed method: none without a request, and an optional one if no member has to be given. */
export type Arguments<Request> = keyof Request extends never ? []
  : Record<never, never> extends Request ? [request?: Request]
  : [request: Request]

/** The typed method of an operation, which can also fail with `E`. */
export type Method<O extends Operation, E, R = never> = (
  ...args: Arguments<Request<O>>
) => Effect.Effect<Response<O>, WrapReason<Failure<O> | E>, R>

/** The typed methods of a table of operations. */
export type Methods<Operations extends { readonly [name: string]: Operation }, E, R = never> = {
  readonly [Name in keyof Operations]: Method<Operations[Name], E, R>
}

/** Makes the typed method of an operation; `Struct.map` with it makes those of a table. */
export interface MethodOf<E, R> extends Struct.Lambda {
  <O extends Operation<string, "read">>(operation: O): Method<O, E, R>
  readonly "~lambda.out": Method<Extract<this["~lambda.in"], Operation>, E, R>
}

/** One way to make the typed method of any read. */
export const typedMethodMapper = <E, R = never>(
  make: (operation: Operation<string, "read">) => Method<Operation, E, R>
) => Struct.lambda<MethodOf<E, R>>(make)

/** Declares a read: it may be retried, hedged, coalesced and cached. */
export const read = <
  const Name extends string,
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(
  declaration: Omit<Operation<Name, "read", Request, Response, Failures>, "class">
): Operation<Name, "read", Request, Response, Failures> => ({ ...declaration, class: "read" })

/** Declares a call that is sent at most once; no answer of it is another caller's. */
export const once = <
  const Name extends string,
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(
  declaration: Omit<OnceOperation<Name, Request, Response, Failures>, "class" | keyof Caching<unknown>>
): OnceOperation<Name, Request, Response, Failures> => ({ ...declaration, class: "once" })

/** The `isCacheable` of responses that decode as `schema` does: never an error, half an answer or `null`. */
export const decodes = (schema: AnyCodec): (request: unknown, answer: Json.Json) => boolean => {
  const decode = Schema.decodeUnknownOption(schema)
  return (_request, answer) => Result.isSuccess(answer.value) && Option.isSome(decode(answer.value.success))
}

/** Which of our surfaces was asked: the gateway's own routes, or the node provider's behind an endpoint key. */
export type Surface = "gateway" | "node"

/** The refusal of an operation that no node serves, asked of a node address. */
export const unavailableOnNode = (operation: Operation): UnavailableOnNode =>
  new UnavailableOnNode({
    operation: operation.name,
    availableOn: operation.sources.filter((source) => source !== "node"),
    detail: `${operation.name} is served by the official API only; a node address does not have it`
  })

/** The sources that serve an operation on a surface; none on the node surface means `unavailableOnNode`. */
export const sourcesOn = (operation: Operation, surface: Surface): ReadonlyArray<Source> =>
  operation.sources.filter((source) =>
    surface === "node" ? source === "node" : operation.sourceOfSurface !== true || source === "official-api"
  )

/** What a request needs the scope of its caller to cover. */
export interface Need {
  readonly chain: Chain
  readonly class: "read" | "sign" | "inspect"
  /** The upstream's name of the operation; absent if no upstream is called. */
  readonly name?: string
  /** Whether the gateway recovers the signer, so that `signers` can be enforced. */
  readonly tellsSigner?: true
}

/** What a call of an operation needs; the name may be that of an action or a query which passes through it. */
export const operationNeed = (
  { chain, class: methodClass, name, protocol }: Pick<Operation, "chain" | "class" | "name" | "protocol">,
  passedThrough: string = name
): Need => ({
  chain,
  class: methodClass === "once" ? "sign" : "read",
  name: passedThrough,
  ...(protocol === "exchange" ? { tellsSigner: true } : {})
})

const refusal = (missing: NotPermitted["missing"], needed: string): NotPermitted =>
  new NotPermitted({
    missing,
    needed,
    detail: missing === "signers"
      ? `This caller sends what some signers sign, and the gateway does not tell who signed ${needed}`
      : `The scope of this caller has no ${needed} among its ${missing}`
  })

/** The refusal of what a scope does not cover; nothing if it covers it. */
export const notPermitted = (scope: Scope, need: Need): NotPermitted | undefined => {
  const { chains, classes, operations, signers } = scope
  if (chains !== undefined && !chains.includes(need.chain)) return refusal("chains", need.chain)
  if (classes !== undefined && !classes.includes(need.class)) return refusal("classes", need.class)
  if (need.name === undefined) return undefined
  if (operations !== undefined && !operations.includes(need.name)) return refusal("operations", need.name)
  return signers !== undefined && need.class === "sign" && need.tellsSigner !== true
    ? refusal("signers", need.name)
    : undefined
}

/** Fails with `NotPermitted` if the scope of the {@link CurrentCaller} does not cover a request. */
export const permitted = (need: Need): Effect.Effect<void, NotPermitted> =>
  Continuation.withContext((context: Context.Context<never>) => {
    const refused = notPermitted(Context.get(context, CurrentCaller).scope, need)
    return refused === undefined ? Exit.void : Exit.fail(refused)
  })

/** Weight that a response of `rows` rows has cost at the official API. */
export const responseWeight = (operation: Pick<Operation, "cost">, rows: number): number =>
  operation.cost.weight +
  (operation.cost.rowsPerWeight === undefined ? 0 : Math.ceil(rows / operation.cost.rowsPerWeight))

/** Most weight that one call can cost. */
export const worstWeight = (operation: Pick<Operation, "cost">): number =>
  responseWeight(operation, operation.cost.maxRows ?? 0)

/** What the answer to a request can cost: of a short window no long one comes. */
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

// a body of a thousand faults is not explained better by a thousand lines, nor a long key by its whole length
const MAX_FAULTS = 16
const MAX_MESSAGE = 240
const MAX_SEGMENT = 64

const cut = (segment: string | number): string | number =>
  typeof segment === "number" ? segment : segment.slice(0, MAX_SEGMENT)

/** Returns the error with all faults of a request, the first one in its `detail`. */
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

/** The faults of a value that did not decode, each with its path below `prefix`. */
export const decodeFaults = (
  error: Schema.SchemaError,
  prefix: ReadonlyArray<string | number> = []
): ReadonlyArray<RequestFault> =>
  format(error.issue).issues.map((issue) => ({
    path: [...prefix, ...(issue.path ?? []).map(segment)],
    message: inWords(issue.message)
  }))

/** Decodes a parsed value; `prefix` is its path in the request. */
export const decodeValue = <S extends AnyCodec>(schema: S, prefix: ReadonlyArray<string | number> = []) => {
  const decode = Schema.decodeUnknownResult(schema, { errors: "all" })
  return (value: unknown): Effect.Effect<S["Type"], InvalidRequest> =>
    Result.match(decode(value), {
      onFailure: (error) => Effect.fail(invalidRequest(decodeFaults(error, prefix))),
      onSuccess: Effect.succeed
    })
}

/**
 * Writes a request as its wire form; fails with `InvalidRequest` for values outside of the types' ranges.
 *
 * `write` prints the encoded request.
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
