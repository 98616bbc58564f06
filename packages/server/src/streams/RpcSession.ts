/**
 * A caller's WebSocket with JSON-RPC. Calls are served as on the HTTP route. Subscriptions are served from the chain's
 * block feed.
 */
import type { Caller } from "@trigate/domain/Caller"
import type { Chain } from "@trigate/domain/Chain"
import { Quantity } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import { Overloaded } from "@trigate/domain/errors/CallerError"
import type { EvmSink, Interest, Subscribed } from "@trigate/domain/evm/EvmSubscriptions"
import { invalidFilter, RangeFilter } from "@trigate/domain/evm/LogMatch"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import type { RpcCall } from "@trigate/domain/operations/JsonRpc"
import { notPermitted } from "@trigate/domain/operations/Operation"
import type { Need } from "@trigate/domain/operations/Operation"
import type { EvmFeed } from "@trigate/upstream/evm/EvmFeed"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { SocketSession } from "./SocketSession.ts"
import type { Opened, SocketSurroundings } from "./SocketSession.ts"
import * as WebSocketFrame from "./WebSocketFrame.ts"

/** The environment of a session: its chain, the chain's block feed, and the function that serves calls. */
export interface Surroundings extends SocketSurroundings {
  readonly chain: Chain
  readonly feed: EvmFeed
  /** Returns the response that the HTTP route would return to a message. */
  readonly reply: (text: string, caller: Caller) => Effect.Effect<string | undefined>
}

const frameLimits: Json.Limits = { ...Json.defaultLimits, maxValues: 20_000 }

const Filter = Schema.Struct({
  address: RangeFilter.fields.address,
  topics: RangeFilter.fields.topics,
  // a tag such as `latest` has no effect: logs are sent as blocks arrive
  fromBlock: Schema.optionalKey(Schema.Union([Quantity, Schema.Null, Schema.String])),
  positions: Schema.optionalKey(Schema.Boolean)
})
const decodeFilter = Schema.decodeUnknownOption(Filter)

/**
 * Decodes the block at which a `newHeads` subscription starts. Other values are ignored, such as the empty object that
 * MetaMask sends.
 */
const decodeStart = Schema.decodeUnknownOption(
  Schema.Struct({ fromBlock: Schema.Union([Schema.Literal("latest"), Quantity]) })
)

const rpcError = (id: string | undefined, code: number, message: string): string =>
  JsonRpc.errorText(id ?? "null", JSON.stringify({ code, message }))

const asList = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** Returns the subscription that a call requests; an error if the request is invalid. */
const interestIn = (
  { params }: RpcCall
): Result.Result<Interest, { readonly code: number; readonly message: string }> => {
  const given: unknown = params.valueOrUndefined
  const [kind, detail] = asList(given)
  switch (kind) {
    case "newHeads":
      return Result.succeed({ kind, ...Option.getOrUndefined(decodeStart(detail)) })
    case "syncing":
      return Result.succeed({ kind })
    case "newPendingTransactions":
      return detail === true
        ? Result.fail({
          code: -32602,
          message: "invalid params: newPendingTransactions sends hashes only, not whole transactions"
        })
        : Result.succeed({ kind })
    case "logs": {
      const filter = decodeFilter(detail ?? {})
      if (Option.isNone(filter)) return Result.fail({ code: -32602, message: invalidFilter })
      const { address, fromBlock, positions, topics } = filter.value
      return Result.succeed({
        kind,
        filter: {
          ...(Predicate.isNullish(address) ? {} : { address }),
          ...(Predicate.isNullish(topics) ? {} : { topics })
        },
        ...(typeof fromBlock === "bigint" ? { fromBlock } : {}),
        ...(positions === true ? { hasPositions: true } : {})
      })
    }
    default:
      return Result.fail({
        code: -32601,
        message: `no "${String(kind).slice(0, 64)}" subscription in eth namespace`
      })
  }
}

/** One JSON-RPC socket of a caller. */
export class RpcSession extends SocketSession {
  readonly #need: Need
  readonly #around: Surroundings
  readonly #subscribed = new Map<string, Subscribed>()
  readonly #sink: EvmSink
  #calls = 0

  constructor(opened: Opened, around: Surroundings) {
    super(opened, around)
    this.#around = around
    this.#need = { chain: around.chain, class: "read" }
    this.#sink = {
      deliver: (frame) => this.outbox.push(WebSocketFrame.wireBytes(frame)),
      flush: () => this.outbox.flush()
    }
  }

  get subscriptions(): number {
    return this.#subscribed.size
  }

  isCoveredBy({ scope }: Caller): boolean {
    return notPermitted(scope, this.#need) === undefined
  }

  protected leave(): void {
    for (const { end } of this.#subscribed.values()) end()
    this.#subscribed.clear()
  }

  protected handle(text: string): void {
    const call = subscriptionCall(text)
    if (call?.method === "eth_subscribe") return this.#subscribe(call)
    if (call?.method === "eth_unsubscribe") return this.#unsubscribe(call)
    if (this.#calls >= this.#around.limits.posts) {
      const refusal = new Overloaded({ retryAfter: 1, detail: "This WebSocket has too many concurrent calls" })
      return this.write(JsonRpc.errorText(idIn(text), JsonRpc.errorObject(refusal)))
    }
    this.#calls++
    this.fork(Effect.map(this.#around.reply(text, this.caller), (answer) => {
      this.#calls--
      if (answer !== undefined && !this.isOver) this.write(answer)
      this.outbox.flush()
    }))
  }

  #subscribe(call: RpcCall): void {
    const interest = interestIn(call)
    if (Result.isFailure(interest)) {
      return this.write(rpcError(call.id, interest.failure.code, interest.failure.message))
    }
    const refusal = notPermitted(this.caller.scope, { ...this.#need, name: call.method })
    if (refusal !== undefined) return this.write(JsonRpc.errorText(call.id ?? "null", JsonRpc.errorObject(refusal)))
    const most = this.caller.quota.subscriptions ?? this.#around.limits.subscriptions
    if (this.#subscribed.size >= most) {
      return this.write(rpcError(call.id, -32005, `a WebSocket has at most ${most} subscriptions`))
    }
    const subscription = this.#around.feed.subscribe(interest.success, this.#sink)
    this.#subscribed.set(subscription.id, subscription)
    this.write(JsonRpc.resultText(call.id ?? "null", JSON.stringify(subscription.id)))
  }

  #unsubscribe(call: RpcCall): void {
    const params: unknown = call.params.valueOrUndefined
    const [id] = asList(params)
    const found = Predicate.isString(id) ? this.#subscribed.get(id.toLowerCase()) : undefined
    if (found === undefined) return this.write(rpcError(call.id, -32000, "subscription not found"))
    this.#subscribed.delete(found.id)
    found.end()
    this.write(JsonRpc.resultText(call.id ?? "null", "true"))
  }
}

/** Decodes a call that subscribes or unsubscribes; `undefined` for any other message. */
const subscriptionCall = (text: string): RpcCall | undefined => {
  if (!text.includes("subscribe")) return undefined
  const parsed = Json.parseStrict(text, frameLimits)
  if (Result.isFailure(parsed)) return undefined
  return Result.getOrUndefined(JsonRpc.readCall(Json.parsed(text, parsed.success)))
}

/** Returns the ID of a call as JSON; `null` if the call cannot be parsed or has no valid ID. */
export const idIn = (text: string): string => {
  const parsed = Json.parse(text)
  const id = Result.isSuccess(parsed) ? JsonRpc.member(parsed.success, "id") : undefined
  return Predicate.isString(id) || Predicate.isNumber(id) || Predicate.isBigInt(id) ? Json.stringify(id) : "null"
}
