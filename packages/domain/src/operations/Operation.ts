/**
 * Operations, their protocols and their responses: each upstream call is declared once, next to its schemas; a protocol
 * writes the call and classifies the upstream's response.
 *
 * Routing, validation, the at-most-once rule, availability errors, rate limits, metric labels, the typed services, the
 * client and the documentation are all derived from these declarations.
 *
 * The embedded services and the typed client decode responses with the same functions. If the upstream is a gateway,
 * its problem document decodes to the error that the gateway encoded.
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
import * as Caller from "../Caller.ts"
import { CandleInterval } from "../candles/Candle.ts"
import * as Utf8 from "../encoding/Encoding.ts"
import * as GatewayError from "../errors/GatewayError.ts"

const words: { readonly [name: string]: string } = {
  never: "no such member",
  number: "a JSON number",
  bigint: "a JSON integer",
  string: "a string",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  Address: "a 20-byte address in 0x hex",
  CandleInterval: `one of ${CandleInterval.literals.join(", ")}`,
  CandleWindowRequest: "an object with coin, interval, startTime and endTime",
  Hash: "32 bytes in 0x hex",
  Millis: "milliseconds since the epoch as a JSON integer",
  Signature: "an object with r, s and v",
  SignatureChainId: "a chain id in 0x hex",
  SignaturePart: "0x hex of 1 to 64 digits",
  StorageSlot: "a storage position of 1 to 64 digits in 0x hex",
  TonAddress: "a token-chain address",
  VaultAddress: "a 20-byte address in hex",
  VenueChain: "\"Mainnet\" or \"Testnet\""
}

const named = /^Expected (?<names>\w+(?: \| \w+)*)$/u

/** Replaces the schema names in a message with descriptions. */
export const replaceSchemaNames = (message: string): string => {
  const names = named.exec(message)?.groups?.["names"]
  if (names === undefined) return message === "Expected no excess property" ? "Unknown member" : message
  const known = names === "number | bigint" ? ["bigint"] : names.split(" | ")
  return `Expected ${known.map((name) => Object.hasOwn(words, name) ? words[name] : name).join(" or ")}`
}

/** The status, the body and the metadata of a response. */
export interface Fields {
  /** Label of the upstream (`trading-api`, `layer2`, …), never its URL. */
  readonly upstream: string
  readonly status: number
  readonly contentType: string
  /** The whole body, in one chunk or in the chunks received. */
  readonly body: Uint8Array | ReadonlyArray<Uint8Array>
  /** The upstream's `Retry-After`, in seconds. */
  readonly retryAfter?: number | undefined
  /** Seconds since the upstream sent the response; absent if the response is not from a cache. */
  readonly age?: number | undefined
  /** The sources of the bars in a candle response, as formatted by `Candle.printSources`. */
  readonly candles?: string | undefined
  /** The signer of the relayed action, as reported by an upstream gateway. */
  readonly signer?: Utf8.Address | undefined
}

/** A response. Its chunks are joined, its text decoded and its JSON parsed at most once, on first use. */
export class UpstreamResponse implements Fields {
  readonly upstream: string
  readonly status: number
  readonly contentType: string
  /** The body as received. */
  readonly pieces: ReadonlyArray<Uint8Array>
  declare readonly retryAfter?: number
  declare readonly age?: number
  declare readonly candles?: string
  declare readonly signer?: Utf8.Address
  #body: Uint8Array | undefined
  #text: string | undefined
  #json: Utf8.Json | undefined

  /** Makes a response. `json` is the body as JSON, if the caller has already parsed it. */
  constructor({ age, body, candles, contentType, retryAfter, signer, status, upstream }: Fields, json?: Utf8.Json) {
    this.upstream = upstream
    this.status = status
    this.contentType = contentType
    this.pieces = body instanceof Uint8Array ? [body] : body
    if (retryAfter !== undefined) this.retryAfter = retryAfter
    if (age !== undefined) this.age = age
    if (candles !== undefined) this.candles = candles
    if (signer !== undefined) this.signer = signer
    this.#json = json
    this.#text = json?.text
  }

  /** The body in one chunk. */
  get body(): Uint8Array {
    return this.#body ??= Utf8.joined(this.pieces)
  }

  /** The body as text; invalid UTF-8 becomes replacement characters. */
  get text(): string {
    return this.#text ??= Utf8.decodeLossy(this.body)
  }

  /** The body as text; `None` if it is not valid UTF-8. */
  get utf8(): Option.Option<string> {
    // text that contains no replacement character was decoded from valid UTF-8
    if (this.#text?.includes("\ufffd") === false) return Option.some(this.#text)
    const text = Utf8.decode(this.body)
    this.#text = Option.getOrElse(text, () => this.text)
    return text
  }

  /** The body as JSON. */
  get json(): Utf8.Json {
    return this.#json ??= new Utf8.Json(this.text)
  }

  /** Whether the content type identifies a problem document (RFC 9457). */
  get isProblem(): boolean {
    return this.contentType.startsWith("application/problem+json")
  }

  /** The beginning of the body, for a message. */
  excerpt(length = 200): string {
    return Utf8.oneLine(Utf8.decodeLossy(Utf8.opening(this.pieces, length)))
  }

  /** Returns a copy with some members replaced. */
  with(fields: Partial<Fields>): UpstreamResponse {
    const { age, candles, contentType, pieces, retryAfter, signer, status, upstream } = this
    return new UpstreamResponse({
      upstream,
      status,
      contentType,
      body: pieces,
      retryAfter,
      age,
      candles,
      signer,
      ...fields
    })
  }
}

/** Makes a response. */
export const make = (fields: Fields): UpstreamResponse => new UpstreamResponse(fields)

const ofJson = (upstream: string, status: number, json: Utf8.Json): UpstreamResponse =>
  new UpstreamResponse({ upstream, status, contentType: "application/json", body: json.bytes }, json)

/** Makes a JSON response from JSON text. */
export const json = (upstream: string, status: number, body: string): UpstreamResponse =>
  ofJson(upstream, status, new Utf8.Json(body))

/**
 * Makes a JSON response from a value without `bigint`. The response stores the value, so its text is not parsed again.
 */
export const jsonValue = (upstream: string, status: number, value: object): UpstreamResponse =>
  ofJson(upstream, status, Utf8.parsed(JSON.stringify(value), value))

/** Makes a plain-text response. */
export const plain = (upstream: string, status: number, body: string): UpstreamResponse =>
  make({ upstream, status, contentType: "text/plain; charset=utf-8", body: Utf8.encode(body) })

/** The header in which a gateway reports the signer of a relayed action. */
export const signerHeader = "x-trigate-signer"

/** The header in which a gateway reports the label of the upstream whose response it relays. */
export const upstreamHeader = "x-trigate-upstream"

const isAddress = Schema.is(Utf8.Address)

/** Reads the signer from a response's headers. */
export const signerIn = (headers: { readonly [name: string]: string | undefined }): Utf8.Address | undefined => {
  const signer = headers[signerHeader]
  return signer !== undefined && isAddress(signer) ? signer : undefined
}

/**
 * How often a call can be sent. A `read` can be repeated. A `once` call is not sent again after bytes of it may have
 * reached the upstream.
 */
export type MethodClass = "read" | "once"

/** The kind of upstream that serves an operation: the venue's API or a node. */
export type Source = "official-api" | "node"

/** The wire protocol of a call, which determines its route. */
export type Protocol = "exchange" | "info" | "evm" | "token-rest" | "token-rpc" | "layer2"

/** A schema that decodes and encodes without services. */
export type AnyCodec = Schema.ConstraintCodec<unknown, unknown>

/** The upstream cost of a call. */
export interface Cost {
  /** Weight in the venue's rate limit; 0 for an operation that only nodes serve. */
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
  readonly matches: (response: UpstreamResponse) => boolean
  // a method, so that an operation with any request type is assignable to `Operation`
  failure(request: Request, response: UpstreamResponse): Failure
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
  isCacheable?(request: Request, response: Utf8.Json): boolean
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
  readonly chain: Caller.Chain
  readonly protocol: Protocol
  /** The effect or result of the call, in one sentence for the documentation. */
  readonly summary: string
  /** The upstream kinds that serve the operation, in order of preference. */
  readonly sources: ReadonlyArray<Source>
  /**
   * Whether the venue's API and nodes respond differently. If they do, there is no failover between them: calls to the
   * gateway's own routes use the venue's API, and calls to the node routes use nodes.
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
  readonly blockParam?: { readonly position: number; readonly supported: ReadonlyArray<GatewayError.StateBlock> }
  /** A response that means an error, regardless of its HTTP status. */
  readonly refusal?: DeclaredRefusal<Request["Type"], Failures[number]["Type"]>
  /**
   * Returns whether a response is relayed unchanged, without an attempt at a different upstream URL, regardless of its
   * HTTP status.
   */
  readonly isFinal?: (response: UpstreamResponse) => boolean
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
) => Effect.Effect<Response<O>, GatewayError.WrapReason<Failure<O> | E>, R>

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
export const decodes = (schema: AnyCodec): (request: unknown, response: Utf8.Json) => boolean => {
  const decode = Schema.decodeUnknownOption(schema)
  return (_request, response) => Result.isSuccess(response.value) && Option.isSome(decode(response.value.success))
}

/** The group of routes that received a request: the gateway's own routes, or the routes of a node provider. */
export type Surface = "gateway" | "node"

/** Makes the error for an operation that was requested on the node routes, but that no node serves. */
export const unavailableOnNode = (operation: Operation): GatewayError.UnavailableOnNode =>
  new GatewayError.UnavailableOnNode({
    operation: operation.name,
    availableOn: operation.sources.filter((source) => source !== "node"),
    detail: `Only the venue's API serves ${operation.name}; nodes do not`
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
  readonly chain: Caller.Chain
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

const refusal = (missing: GatewayError.NotPermitted["missing"], needed: string): GatewayError.NotPermitted =>
  new GatewayError.NotPermitted({
    missing,
    needed,
    detail: missing === "signers"
      ? `This caller is allowed to send only what its signers signed, but the gateway cannot recover the signer of ${needed}: use a key whose scope does not list signers`
      : `The list ${missing} in the scope of this caller does not contain ${needed}`
  })

/** Returns the error for a request outside a scope; `undefined` if the scope permits the request. */
export const notPermitted = (scope: Caller.Scope, need: Need): GatewayError.NotPermitted | undefined => {
  const { chains, classes, operations, signers } = scope
  if (chains !== undefined && !chains.includes(need.chain)) return refusal("chains", need.chain)
  if (classes !== undefined && !classes.includes(need.class)) return refusal("classes", need.class)
  if (need.name === undefined) return undefined
  if (operations !== undefined && !operations.includes(need.name)) return refusal("operations", need.name)
  return signers !== undefined && need.class === "sign" && need.recoversSigner !== true
    ? refusal("signers", need.name)
    : undefined
}

/** Fails with `NotPermitted` if the scope of the {@link Caller.CurrentCaller} does not permit a request. */
export const permitted = (need: Need): Effect.Effect<void, GatewayError.NotPermitted> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const refused = notPermitted(Context.get(context, Caller.CurrentCaller).scope, need)
    return refused === undefined ? Exit.void : Exit.fail(refused)
  })

/** Returns the weight, in the venue's rate limit, of a call whose response has `rows` rows. */
export const responseWeight = (operation: Pick<Operation, "cost">, rows: number): number =>
  operation.cost.weight +
  (operation.cost.rowsPerWeight === undefined ? 0 : Math.ceil(rows / operation.cost.rowsPerWeight))

/** Returns the maximum weight of one call. */
export const worstWeight = (operation: Pick<Operation, "cost">): number =>
  responseWeight(operation, operation.cost.maxRows ?? 0)

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
export const invalidRequest = (faults: ReadonlyArray<GatewayError.RequestFault>): GatewayError.InvalidRequest => {
  const errors = faults.slice(0, MAX_FAULTS).map(({ message, path }) => ({
    path: path.map(cut),
    message: message.slice(0, MAX_MESSAGE)
  }))
  const first = errors[0]
  return new GatewayError.InvalidRequest({
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
): ReadonlyArray<GatewayError.RequestFault> =>
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
  return (value: unknown): Effect.Effect<S["Type"], GatewayError.InvalidRequest> =>
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
  write: (encoded: unknown) => Utf8.Json = Utf8.write
) => {
  const encode = Schema.encodeUnknownEffect(schema, { errors: "all" })
  return (request: S["Type"] = {}): Effect.Effect<Utf8.Json, GatewayError.InvalidRequest> =>
    Effect.mapBoth(encode(request), {
      onFailure: (error) => invalidRequest(decodeFaults(error, prefix)),
      onSuccess: write
    })
}

/** Parses a request strictly: JSON, no duplicate keys, bounded nesting and number of values. */
export const parseRequest = (text: string, bytes?: Uint8Array): Effect.Effect<Utf8.Json, GatewayError.InvalidRequest> =>
  Result.match(Utf8.parseStrict(text), {
    onFailure: (refusal) => Effect.fail(invalidRequest([refusal])),
    onSuccess: (value) => Effect.succeed(Utf8.parsed(text, value, bytes))
  })

/**
 * Makes the error for a response that does not decode. `issue` is the reason; it quotes at most an excerpt of the
 * response.
 */
export const malformed = (upstream: string, issue: string): GatewayError.UpstreamMalformed =>
  new GatewayError.UpstreamMalformed({
    upstream,
    issue,
    detail: `${upstream} sent a response that does not decode: ${issue}`
  })

/** Maps an HTTP status other than 200 to a typed error with the upstream's message. */
export const failureOfStatus = (response: UpstreamResponse): GatewayError.CommonFailure => {
  const { retryAfter, status, upstream } = response
  const words = response.excerpt()
  const detail = words === "" || words === "null"
    ? `${upstream} responded with HTTP ${status}`
    : `${upstream} responded with HTTP ${status}: ${words}`
  const retry = retryAfter === undefined ? {} : { retryAfter }
  if (status === 429) return new GatewayError.UpstreamRateLimited({ upstream, detail, ...retry })
  if (status === 401 || status === 403) return new GatewayError.UpstreamForbidden({ upstream, detail })
  if (status === 400 || status === 422) {
    return new GatewayError.InvalidRequest({ errors: [{ path: [], message: words }], detail })
  }
  return new GatewayError.UpstreamUnavailable({ upstream, attempts: 1, detail, ...retry })
}

/** Makes a decoder of problem documents. The decoder returns `None` if the response is not a problem document. */
export const problemReader = <S extends AnyCodec>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (response: UpstreamResponse): Option.Option<S["Type"]> =>
    response.isProblem
      ? Option.flatMap(Result.getSuccess(response.json.value), (body) => decode(body))
      : Option.none()
}

const failureReader = <S extends AnyCodec>(schema: S) => {
  const readProblem = problemReader(schema)
  return (response: UpstreamResponse): S["Type"] | GatewayError.CommonFailure =>
    Option.getOrElse(readProblem(response), () => failureOfStatus(response))
}

/** Returns the typed error that a response reports: the error in its problem document, or the error for its status. */
export const responseFailure = failureReader(Schema.Union(GatewayError.upstreamFailures))

/** Like {@link responseFailure}, but also decodes a gateway's errors about the caller, such as `Unauthorized`. */
export const servedResponseFailure = failureReader(GatewayError.ServedFailure)

/** Makes the error for a response after which the outcome of an at-most-once call (`what`) is unknown. */
export const outcomeUnknown = (
  response: UpstreamResponse,
  what: string,
  known: Pick<GatewayError.OutcomeUnknown, "advice" | "nonce" | "signer">
): GatewayError.OutcomeUnknown => {
  const { status, upstream } = response
  const detail =
    `${upstream} responded with HTTP ${status}, which leaves the outcome of the ${what} open: ${response.excerpt()}`
  return new GatewayError.OutcomeUnknown({ upstream, ...known, detail })
}

const formatIssue = (error: Schema.SchemaError): string => error.message.split("\n").slice(0, 3).join(" ").slice(0, 240)

/** Makes a JSON decoder for a schema. The decoder fails with `UpstreamMalformed`. */
export const decodeJson = <S extends AnyCodec>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (upstream: string, json: Utf8.Json): Effect.Effect<S["Type"], GatewayError.UpstreamMalformed> =>
    Result.match(json.value, {
      onFailure: (refusal) => Effect.fail(malformed(upstream, refusal.message)),
      onSuccess: (value) => Effect.mapError(decode(value), (error) => malformed(upstream, formatIssue(error)))
    })
}

/**
 * Makes the decoder of an operation's responses over HTTP without JSON-RPC. Reuse the decoder, because it contains
 * compiled schemas.
 */
export const makeReader = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, MethodClass, Request, Response, Failures>) => {
  const readProblem = problemReader(Schema.Union([...GatewayError.upstreamFailures, ...operation.failures]))
  const decodeResponse = decodeJson(operation.response)
  return (
    request: Request["Type"],
    response: UpstreamResponse
  ): Effect.Effect<Response["Type"], Failures[number]["Type"] | GatewayError.CommonFailure> => {
    const problem = readProblem(response)
    if (Option.isSome(problem)) return Effect.fail(problem.value)
    if (operation.refusal?.matches(response) === true) return Effect.fail(operation.refusal.failure(request, response))
    return response.status === 200
      ? decodeResponse(response.upstream, response.json)
      : Effect.fail(failureOfStatus(response))
  }
}

/**
 * The fault of an attempt, if the call might succeed later or at a different upstream URL. This is a closed set, which
 * metrics use as a label.
 *
 * - `declined`: the upstream URL reports a protocol error because it cannot serve this call. The URL is healthy, and
 *   would respond to the call in the same way again.
 * - `mismatched`: the response is JSON, but not a response to this call. This indicates only weakly that other calls to
 *   the URL fail too.
 * - `withheld`: no attempt was made.
 */
export type RetryableFault =
  | "not_sent"
  | "broken"
  | "timeout"
  | "server_fault"
  | "rate_limited"
  | "declined"
  | "malformed"
  | "mismatched"
  | "withheld"

/** The upstream responded; `rows` is the length of the response if it is a list. */
export interface Answered<A> {
  readonly _tag: "Answered"
  readonly answer: A
  readonly rows: number
}

/** The upstream refused the call, and would refuse it again. */
export interface Refused<E> {
  readonly _tag: "Refused"
  readonly failure: E
}

/** The call is unresolved: another attempt might succeed. */
export interface Retryable<A, E> {
  readonly _tag: "Retryable"
  readonly fault: RetryableFault
  /** The upstream's response, which the caller receives if all attempts fail. */
  readonly answer: A | undefined
  /** Seconds to wait before the next attempt, as the upstream requests. */
  readonly retryAfter: number | undefined
  /** Makes the error that the caller receives if all attempts fail; `attempts` is the number of attempts. */
  readonly failure: (attempts: number) => E
}

/** The result of one attempt. */
export type AttemptResult<A, E> = Answered<A> | Refused<E> | Retryable<A, E>

/** Returns the result of a completed call. */
export const answered = <A>(response: A, rows = 0): Answered<A> => ({ _tag: "Answered", answer: response, rows })

/** Makes the result of a refused call. */
export const refused = <E>(failure: E): Refused<E> => ({ _tag: "Refused", failure })

/** Makes the result of an attempt that leaves the call unresolved. */
export const retryable = <A, E>(
  fault: RetryableFault,
  failure: (attempts: number) => E,
  said: { readonly answer?: A; readonly retryAfter?: number | undefined } = {}
): Retryable<A, E> => ({ _tag: "Retryable", fault, answer: said.answer, retryAfter: said.retryAfter, failure })

/** Returns the error of a read whose attempts all failed. */
export const unavailable = (upstream: string, detail: string) => (attempts: number): GatewayError.UpstreamUnavailable =>
  new GatewayError.UpstreamUnavailable({ upstream, attempts, detail })

/** Makes the result of an attempt that was not made or was interrupted. */
export const unreachable = (
  upstream: string,
  fault: RetryableFault,
  detail: string
): Retryable<never, GatewayError.UpstreamUnavailable> =>
  retryable(fault, unavailable(upstream, `${upstream} could not be reached (${detail})`))

/** Makes the result of an attempt whose response does not decode. */
export const unreadable = (upstream: string, issue: string): Retryable<never, GatewayError.UpstreamMalformed> =>
  retryable("malformed", () => malformed(upstream, issue))

/** Makes the result of an attempt whose JSON is not a response to the call. */
export const mismatched = (upstream: string, issue: string): Retryable<never, GatewayError.UpstreamMalformed> =>
  retryable("mismatched", () => malformed(upstream, issue))

const startsHtml = /^\s*</u

/**
 * Returns whether a status is in a class that HTTP defines (RFC 9110, section 15); a server cannot forward any other
 * status.
 */
const isKnownStatus = (status: number): boolean => status >= 100 && status <= 599

/**
 * Returns why a response is not from the upstream itself: it is a proxy's HTML, an empty body or a redirect, or has an
 * invalid status. Otherwise returns `undefined`.
 */
export const foreign = (response: UpstreamResponse): string | undefined => {
  const { contentType, pieces, status } = response
  const first = pieces.find(({ length }) => length > 0)?.[0]
  if (!isKnownStatus(status)) return `an unknown status (HTTP ${status})`
  if (status >= 300 && status < 400) return `a redirect (HTTP ${status})`
  if (first === undefined && status !== 429) return `an empty body (HTTP ${status})`
  const isHtml = contentType.startsWith("text/html") ||
    // for most responses, the first byte alone shows that the body is not HTML
    (first !== 0x7b && first !== 0x5b && startsHtml.test(response.excerpt(8)))
  return isHtml ? `HTML (HTTP ${status})` : undefined
}

/** Returns the result of an attempt if its response is not from the upstream itself; otherwise `undefined`. */
export const ofForeign = (
  response: UpstreamResponse
): Retryable<never, GatewayError.UpstreamUnavailable | GatewayError.UpstreamMalformed> | undefined => {
  const issue = foreign(response)
  if (issue === undefined) return undefined
  const { status, upstream } = response
  return status >= 400 && isKnownStatus(status)
    ? retryable("server_fault", unavailable(upstream, `${upstream} responded with ${issue}`))
    : unreadable(upstream, issue)
}

/**
 * The destination of a chain's validated calls: live upstreams, an in-memory state, or a sandbox.
 *
 * The layers of a service differ only in their backend.
 */
export interface Backend<Read, Once, Answer> {
  readonly read: (call: Read) => Effect.Effect<Answer, GatewayError.CommonFailure>
  /** Sends a call at most once. */
  readonly once: (
    call: Once
  ) => Effect.Effect<Answer, GatewayError.CommonFailure | GatewayError.OutcomeUnknown | GatewayError.PolicyViolation>
}

/** The declaration of a read. */
export type ReadOperation = Operation<string, "read">

/** The stored content of a response: its body, as bytes or as text, and its metadata. */
export interface CachedContent {
  readonly head: string
  readonly body: string | Uint8Array
}

/**
 * The party that caused the error in a response.
 *
 * - `upstream`: the upstream failed, so a stale cached response is preferable.
 * - `caller`: the upstream refused the request as written; an equivalent request in another format might succeed.
 */
export type FaultOwner = "upstream" | "caller"

/** The cache encoding of one kind of response. */
export interface CacheCodec<A> {
  /** Returns the content to store; `undefined` for an unsuccessful response. */
  readonly store: (response: A) => CachedContent | undefined
  /** Restores a response from content that was stored `age` seconds ago. */
  readonly restore: (content: CachedContent, age: number) => A
  /** Returns the party that caused the error in a response; `undefined` for a success. */
  readonly faultOf: (response: A) => FaultOwner | undefined
  /** Returns whether a response reports that the rate limit is exhausted. Default: never. */
  readonly isRateLimited?: (response: A) => boolean
}

/**
 * One request as sent, and the classification of its response. The request is a POST if it has a body, otherwise a GET.
 */
export interface EncodedRead<A, E> {
  readonly body: Uint8Array | undefined
  readonly judge: (response: UpstreamResponse) => AttemptResult<A, E>
}

/**
 * The response to a batch: one response for each of its calls, or `NoBatches` if the node does not accept the batch.
 *
 * `most` is the maximum number of calls in a batch, if the node's error states it.
 */
export type BatchResponse<Each> =
  | { readonly _tag: "Each"; readonly responses: ReadonlyArray<Each> }
  | { readonly _tag: "NoBatches"; readonly most?: number | undefined }

/** The functions that encode, classify and cache the read calls of a protocol. */
export interface ReadProtocol<Call extends { readonly operation: ReadOperation }, A, E> {
  /** Returns the cache key of a call. Calls of one operation with equal keys are coalesced and cached together. */
  readonly key: (call: Call) => string
  /**
   * Returns the cache policy of the response to a call; `undefined` if the response is not cached. `onRequest` is true
   * for a caller that accepts a response that is one block old.
   */
  readonly cachePolicy: (call: Call, now: number, onRequest: boolean) => CachePolicy | undefined
  /** Returns whether a response is cacheable: it is not an error, and it is the response to this call. */
  readonly isCacheable: (call: Call, response: A) => boolean
  /** Returns the maximum cost of a call, for a protocol in which the cost depends on the call. */
  readonly costOf?: (call: Call, now: number) => Cost
  /**
   * Returns the accounts whose state a call reads, in lower case; empty if it reads the state of an account that it
   * does not name. Returns `undefined` if it reads no account.
   *
   * After an action that changes one of these accounts, responses from before the action are not served.
   */
  readonly accountsIn?: (call: Call) => ReadonlyArray<string> | undefined
  readonly codec: CacheCodec<A>
  /** Encodes a call; `id` identifies the response to this call, if the protocol has IDs. */
  readonly write: (call: Call, id: number) => EncodedRead<A, E>
}
