/**
 * The JSON-RPC routes: `POST /evm`, `POST /l2` and `POST /api/v2/jsonRPC`, each derived from its table of operations.
 *
 * The `id` of a call is returned unchanged, and its result is the upstream's text. The responses of a batch are in the
 * order of its calls, and a failed call does not affect the others. A notification is not relayed, and has no response.
 */
import type { Scope } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { rpcCodes, UnsupportedMethod, unwrapReason } from "@trigate/domain/errors/GatewayError"
import type { CallError, GatewayError, InvalidRequest } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import type { RpcCall } from "@trigate/domain/evm/EvmProtocol"
import * as Layer2Operations from "@trigate/domain/evm/Layer2Operations"
import * as Operation from "@trigate/domain/operations/Operation"
import { tokenRpcOperations, tokenSendOperations } from "@trigate/domain/tokens/TokenOperations"
import { configuredReads, type Serving } from "@trigate/domain/unstable/evm/EvmMethods"
import * as TokenRpc from "@trigate/domain/unstable/tokens/TokenProtocol"
import { Layer2 } from "@trigate/evm/Layer2"
import * as EvmUpstream from "@trigate/evm/unstable/EvmUpstream"
import { TokenChain } from "@trigate/tokens/TokenChain"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Request from "../requests/Request.ts"
import { notOffered } from "./NotFoundRoutes.ts"

/**
 * The functions that read calls and encode responses in a chain's JSON-RPC format. `id` is the JSON text of a call's
 * ID.
 */
interface Envelope<Answer> {
  /** Parses a call in a common format without a JSON parser; `undefined` means that `read` has to parse it. */
  readonly usual?: (text: string) => RpcCall | undefined
  readonly read: (json: Json.Json) => Result.Result<RpcCall, InvalidRequest>
  /** Returns whether a call is a notification. */
  readonly isNotification: (call: RpcCall) => boolean
  readonly answer: (id: string | undefined, answer: Answer) => string
  /** Encodes an error once, for use with any number of IDs. */
  readonly error: (error: GatewayError, code: number) => (id: string | undefined) => string
}

/** An upstream's response: its result, or its error. */
interface Answered {
  readonly _tag: "Result" | "Error"
  readonly age?: number
}

interface Definition<O extends Operation.Operation, Answer extends Answered> {
  readonly operations: ReadonlyArray<O>
  readonly envelope: Envelope<Answer>
  /** Maximum number of calls in a batch. */
  readonly maxBatch: number
  /**
   * Maximum number of concurrent calls of a batch. A chain that supports batches receives these calls as one request.
   */
  readonly concurrency: number | "unbounded"
  /** Validates the params and relays the call. */
  readonly relay: (
    call: { readonly operation: O; readonly params: Json.Json; readonly surface: Operation.Surface }
  ) => Effect.Effect<Answer, CallError>
}

/** The record of a request, and the surface that received it: the gateway's own routes or the node routes. */
export interface Asked {
  readonly record: Request.RequestRecord
  readonly surface: Operation.Surface
}

/** The JSON limits for the longest batch. A call has up to a dozen JSON values, or more if it contains a filter. */
const limits = { ...Json.defaultLimits, maxValues: 20_000 }

const parseError = -32700
const invalidEnvelope = -32600

// an ID that cannot be parsed becomes `null` in the response
const jsonRpc: Envelope<EvmProtocol.RpcResponse> = {
  usual: EvmProtocol.usualCall,
  read: EvmProtocol.readCall,
  isNotification: (call) => call.id === undefined,
  answer: (id = "null", answer) =>
    answer._tag === "Result"
      ? EvmProtocol.resultText(id, answer.result.text)
      : EvmProtocol.errorText(id, answer.error.text),
  error: (error, code) => {
    const object = EvmProtocol.errorObject(error, code)
    return (id = "null") => EvmProtocol.errorText(id, object)
  }
}

// nodes send this text, and clients recognize it: if ethers receives it, ethers polls instead of installing filters
const unsupported = (method: string) =>
  new UnsupportedMethod({
    method: method.slice(0, 128),
    detail: `the method ${method.slice(0, 128)} does not exist on this route`
  })

/** Returns the JSON text of a call's ID, even if the call is invalid. */
const rawId = (text: string): string | undefined => {
  const raw = EvmProtocol.rawMember(text, Json.members(text), "id")
  const id = raw === undefined ? undefined : Result.getOrElse(Json.parse(raw), () => undefined)
  return Predicate.isString(id) || Predicate.isNumber(id) || Predicate.isBigInt(id) ? raw : undefined
}

/** Maximum length in characters of a response that refuses each call of a batch; enough for 10,000 calls. */
const longestRefusal = 4 * 1024 * 1024

/**
 * Encodes an error as the response to each call of a batch, except calls without an ID. Returns `undefined` if no call
 * has an ID, or if the response would be too long.
 *
 * A client matches responses with its calls. If the response to a batch were a single object, ethers 5 would never
 * settle the calls, and web3 1 would treat the object as the response to a call.
 */
const eachAnswered = (texts: ReadonlyArray<string>, write: (id: string) => string): string | undefined => {
  const answers: Array<string> = []
  let length = 0
  for (const text of texts) {
    const id = rawId(text)
    if (id === undefined) continue
    const answer = write(id)
    length += answer.length + 1
    if (length > longestRefusal) return undefined
    answers.push(answer)
  }
  return answers.length === 0 ? undefined : `[${answers.join(",")}]`
}

/** The functions of a route: serve a request, or refuse the whole request before its body is read. */
export interface Route {
  readonly handle: (
    request: Request.IncomingRequest,
    surface: Operation.Surface
  ) => Effect.Effect<HttpServerResponse.HttpServerResponse, Request.BodyFailure>
  /**
   * Serves a request like `handle`, but responds with 404 to JSON that is not a call: the path is then not an endpoint key,
   * but the path of another API.
   */
  readonly handleCall: Route["handle"]
  readonly refuse: (request: Request.IncomingRequest, error: CallError) => HttpServerResponse.HttpServerResponse
  /** Returns the response to a message of a WebSocket; `undefined` for a notification. */
  readonly reply: (text: string, asked: Asked) => Effect.Effect<string | undefined>
}

/** Returns whether a text is a JSON object without any member of a JSON-RPC call. */
const isOtherJson = (text: string): boolean => {
  const value = Result.getOrUndefined(Json.parseStrict(text, limits))
  return Predicate.isObject(value) &&
    !["jsonrpc", "method", "id", "params"].some((member) => Object.hasOwn(value, member))
}

const notCall = notOffered(
  "Unknown route. POST to an endpoint key alone is the layer 2's JSON-RPC, and the body is not a JSON-RPC call; GET /docs lists the routes"
)

/** The scope of a request without a caller, which the listener does not let through. */
const nothing: Scope = { classes: [] }

const make = <O extends Operation.Operation, Answer extends Answered>(definition: Definition<O, Answer>): Route => {
  const { envelope, relay } = definition
  const table = new Map(
    definition.operations.map((operation) => {
      const need = Operation.operationNeed(operation)
      return [operation.name, { operation, need }]
    })
  )

  const perform = ({ method, params }: RpcCall, { record, surface }: Asked): Effect.Effect<Answer, CallError> => {
    const known = table.get(method)
    if (known === undefined) return Effect.fail(unsupported(method))
    const { need, operation } = known
    const refusal = (operation.class === "once" ? Request.foreignRefusal(record) : undefined) ??
      Operation.notPermitted(record.caller?.scope ?? nothing, need)
    return refusal === undefined ? relay({ operation, params, surface }) : Effect.fail(refusal)
  }

  /** Makes the functions that encode the response to a call, and record the operation's outcome. */
  const observeEnd = ({ id, method }: RpcCall, { record }: Asked) => {
    const operation = table.has(method) ? method : "unsupported"
    return {
      onFailure: (failure: CallError) => {
        const error = unwrapReason(failure)
        record.operations.push({ operation, outcome: error._tag })
        return envelope.error(error, rpcCodes[error._tag])(id)
      },
      onSuccess: (answer: Answer) => {
        record.operations.push({ operation, outcome: answer._tag === "Error" ? "upstream_error" : "ok" })
        Request.noteAge(record, answer.age)
        return envelope.answer(id, answer)
      }
    }
  }

  // a notification is not relayed, because its outcome could not be reported
  const answerCall = (call: RpcCall, asked: Asked): Effect.Effect<string | undefined> => {
    return envelope.isNotification(call)
      ? Effect.undefined
      : Effect.match(perform(call, asked), observeEnd(call, asked))
  }

  const refuseCall = (id: string | undefined, error: InvalidRequest, code: number, { record }: Asked) => {
    record.operations.push({ operation: "unsupported", outcome: error._tag })
    return Effect.succeed(envelope.error(error, code)(id))
  }

  const refuseCalls = (texts: ReadonlyArray<string>, error: GatewayError, code: number, { record }: Asked) => {
    record.operations.push({ operation: "unsupported", outcome: error._tag })
    const write = envelope.error(error, code)
    return Effect.succeed(eachAnswered(texts, write) ?? write(undefined))
  }

  const refuseBatch = (texts: ReadonlyArray<string>, message: string, asked: Asked) =>
    refuseCalls(texts, Operation.invalidRequest([{ path: [], message }]), invalidEnvelope, asked)

  const answerOne = (json: Json.Json, asked: Asked): Effect.Effect<string | undefined> =>
    Result.match(envelope.read(json), {
      onFailure: (error) => refuseCall(rawId(json.text), error, invalidEnvelope, asked),
      onSuccess: (call) => answerCall(call, asked)
    })

  const tooManyCalls = `A batch has at most ${definition.maxBatch} call${definition.maxBatch === 1 ? "" : "s"}`

  const answerCalls = (
    texts: ReadonlyArray<string>,
    values: ReadonlyArray<unknown>,
    asked: Asked
  ): Effect.Effect<string | undefined> => {
    const answers = EvmUpstream.batched(
      Effect.forEach(texts, (text, index) => answerOne(Json.parsed(text, values[index]), asked), {
        concurrency: definition.concurrency
      })
    )
    return Effect.map(answers, (all) => {
      const given = all.filter(Predicate.isNotUndefined)
      return given.length === 0 ? undefined : `[${given.join(",")}]`
    })
  }

  const answerBatch = (
    texts: ReadonlyArray<string>,
    values: ReadonlyArray<unknown>,
    asked: Asked
  ): Effect.Effect<string | undefined> => {
    if (texts.length === 0) return refuseBatch(texts, "The batch is empty: send at least one call", asked)
    if (texts.length > definition.maxBatch) return refuseBatch(texts, tooManyCalls, asked)
    const answers = answerCalls(texts, values, asked)
    const countMore = texts.length > 1 ? asked.record.admitted?.countMore : undefined
    return countMore === undefined ? answers : Effect.matchEffect(countMore(texts.length - 1), {
      onFailure: (error) => refuseCalls(texts, error, rpcCodes[error._tag], asked),
      onSuccess: () => answers
    })
  }

  const refuseText = (text: string, refusal: Json.ParseFault, asked: Asked) => {
    if (refusal.path.length === 0) return refuseCall(undefined, Operation.invalidRequest([refusal]), parseError, asked)
    const texts = Json.elements(text) ?? []
    return texts.length > definition.maxBatch
      ? refuseBatch(texts, tooManyCalls, asked)
      : refuseCall(undefined, Operation.invalidRequest([refusal]), invalidEnvelope, asked)
  }

  const answerText = (text: string, asked: Asked): Effect.Effect<string | undefined> => {
    const usual = envelope.usual?.(text)
    if (usual !== undefined) return answerCall(usual, asked)
    return Result.match(Json.parseStrict(text, limits), {
      onFailure: (refusal) => refuseText(text, refusal, asked),
      onSuccess: (value) =>
        Array.isArray(value)
          ? answerBatch(Json.elements(text) ?? [], value, asked)
          : answerOne(Json.parsed(text, value), asked)
    })
  }

  // an error of the HTTP layer keeps its HTTP status; its body is a JSON-RPC error
  const refuse: Route["refuse"] = ({ record }, failure) => {
    const error = unwrapReason(failure)
    record.error = error._tag
    const code = error._tag === "InvalidRequest" ? invalidEnvelope : rpcCodes[error._tag]
    const text = envelope.error(error, code)(undefined)
    return Request.jsonResponse(text, error.status, Request.problemHeaders(error))
  }

  const toResponse = (body: string | undefined) =>
    body === undefined ? HttpServerResponse.empty({ status: 204 }) : Request.jsonResponse(body)

  const handler = (isOther: (text: string) => boolean): Route["handle"] => (request, surface) =>
    Effect.flatMap(
      Request.text(request),
      (text) =>
        isOther(text)
          ? Effect.succeed(notCall)
          : Effect.map(answerText(text, { record: request.record, surface }), toResponse)
    )

  return {
    refuse,
    reply: answerText,
    handle: handler(() => false),
    handleCall: handler((text) => envelope.usual?.(text) === undefined && isOtherJson(text))
  }
}

/** The configurable options of the routes. */
export interface Options {
  /**
   * JSON-RPC reads that `/evm` and `/l2` relay in addition to the declared methods: names of methods, and of families such as
   * `zks_*`.
   */
  readonly methods: ReadonlyArray<string>
  /** Maximum number of calls in a batch. */
  readonly maxBatch: number
}

const evmRoute = <O extends Operation.Operation>(
  { maxBatch }: Options,
  operations: ReadonlyArray<O>,
  { relay }: Pick<Definition<O, EvmProtocol.RpcResponse>, "relay">
  // unbounded, because effect 4.1.0 overflows the stack when a batch reaches a numeric limit
) => make({ operations, envelope: jsonRpc, maxBatch, concurrency: "unbounded", relay })

// configured methods come first, so that they replace declared methods of the same name
const configuredMethods = ({ methods }: Options, serving: Serving) =>
  methods.flatMap((name) => configuredReads(name, serving))

/** The handler of `/evm`. */
export const evm = (options: Options) =>
  Effect.map(
    TradingEvm,
    (evm) =>
      evmRoute(options, [...configuredMethods(options, evm.serving), ...EvmProtocol.makeEvmMethods(evm.serving)], evm)
  )

/** The handler of `/l2`. */
export const layer2 = (options: Options) =>
  Effect.map(
    Layer2,
    (layer2) =>
      evmRoute(
        options,
        [...configuredMethods(options, Layer2Operations.serving), ...Layer2Operations.layer2Methods],
        layer2
      )
  )

const tokenRpc: Envelope<TokenRpc.TokenRpcResponse> = {
  read: TokenRpc.readCall,
  // the chain's own servers also respond to a call without an ID
  isNotification: () => false,
  answer: TokenRpc.answerText,
  error: TokenRpc.errorText
}

/** The handler of the token chain's JSON-RPC. */
export const tokens = Effect.map(TokenChain, ({ relay }) =>
  make({
    operations: [...Object.values(tokenRpcOperations), ...Object.values(tokenSendOperations)],
    envelope: tokenRpc,
    maxBatch: 100,
    concurrency: 8,
    relay
  }))
