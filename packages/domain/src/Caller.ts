/**
 * The caller of a request, its scope and its quota; and the chains of the gateway by their roles, which a scope names.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Schema from "effect/Schema"
import { Address } from "./encoding/Encoding.ts"

/** The three upstream chains, by role. */
export const chains = ["trading", "tokens", "layer2"] as const
export type Chain = (typeof chains)[number]

/** The labels that name the chains' upstreams in errors, metrics and the readiness response. */
export const upstreamLabels = ["trading-api", "trading-node", "token-chain", "layer2"] as const
export type UpstreamLabel = (typeof upstreamLabels)[number]

/** The label of the nodes that serve a chain's JSON-RPC. */
export const nodeLabels = {
  trading: "trading-node",
  tokens: "token-chain",
  layer2: "layer2"
} as const satisfies { readonly [Of in Chain]: UpstreamLabel }

/** Builds a record with one value for each upstream label. */
export const perUpstream = <A>(make: (upstream: UpstreamLabel) => A): { readonly [Label in UpstreamLabel]: A } => ({
  "trading-api": make("trading-api"),
  "trading-node": make("trading-node"),
  "token-chain": make("token-chain"),
  layer2: make("layer2")
})

/** The name of a caller. Its characters need no escaping in logs, lists, paths and command lines. */
export const CallerName = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/u))

const Positive = Schema.Finite.check(Schema.isGreaterThan(0))
const Count = Schema.Int.check(Schema.isGreaterThan(0))

/**
 * The permissions of a caller. An absent list sets no restriction, except that the class `admin` is permitted only if
 * `classes` lists it.
 *
 * If `signers` is present, the caller cannot send transactions to nodes, because the gateway does not recover a
 * transaction's signer.
 */
export const Scope = Schema.Struct({
  chains: Schema.optionalKey(Schema.Array(Schema.Literals(chains))),
  /**
   * `sign` permits signed actions and transactions; `inspect` permits `POST /exchange/inspect`; `admin` permits the
   * routes of the admin listener; `read` permits everything else.
   */
  classes: Schema.optionalKey(Schema.Array(Schema.Literals(["read", "sign", "inspect", "admin"]))),
  /** The permitted action types, query types and node methods, as the upstream names them. */
  operations: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The signers whose actions the caller is allowed to send. */
  signers: Schema.optionalKey(Schema.Array(Address))
})

/** The permissions of a caller. */
export type Scope = typeof Scope.Type

/** The quota of a caller. An absent member sets no limit. */
export const Quota = Schema.Struct({
  requestsPerSecond: Schema.optionalKey(Positive),
  /** Maximum number of requests in a burst. Default: `requestsPerSecond`, rounded up. */
  burst: Schema.optionalKey(Count),
  /** Maximum rate-limit weight, per minute, of the caller's requests to the venue's API. */
  weightPerMinute: Schema.optionalKey(Positive),
  /** Maximum number of request units (the cost of calls in a node provider's plan) per second. */
  unitsPerSecond: Schema.optionalKey(Positive),
  concurrentCalls: Schema.optionalKey(Count),
  /** Maximum number of open WebSockets. */
  sockets: Schema.optionalKey(Count),
  /** Maximum number of subscriptions on one WebSocket. */
  subscriptions: Schema.optionalKey(Count),
  /** Maximum number of messages per minute on one WebSocket. */
  messagesPerMinute: Schema.optionalKey(Count)
})

/** The quota of a caller. */
export type Quota = typeof Quota.Type

/** The caller of a request: the owner of a key, a client address, or this process itself. */
export interface Caller {
  /**
   * Identifies the caller, and does not change when its key is rotated. Format: `key:<name>`, `address:<IP address>` or
   * `local`, or the name of background work.
   */
  readonly id: string
  /** Prefix of the caller's key, for logs; absent for a caller without a key. */
  readonly key?: string
  readonly scope: Scope
  readonly quota: Quota
}

/** Returns a caller without restrictions: the owner of background work of this process. */
export const background = (id: string): Caller => ({ id, scope: {}, quota: {} })

/** This process itself, such as a program that embeds the services: a caller without restrictions. */
export const local: Caller = background("local")

/**
 * The owner of work whose owner was not set: a program that embeds the services, which logs name like {@link local}. A
 * gateway makes no upstream call for it.
 */
export const unowned: Caller = background(local.id)

/** The caller on whose behalf a fiber runs, and to whom its upstream calls are charged. Default: {@link unowned}. */
export const CurrentCaller = Context.Reference<Caller>("@trigate/domain/CurrentCaller", { defaultValue: () => unowned })

/** A function that counts the current request against its caller's quota until the returned function is called. */
export type KeepCounted = () => () => void

/**
 * The function that counts the request of the current fiber against the caller's quota. Default: a function that does
 * nothing.
 */
export const CurrentKeepCounted = Context.Reference<KeepCounted>("@trigate/domain/CurrentKeepCounted", {
  defaultValue: () => () => constVoid
})

/**
 * Runs an effect to completion even if the caller disconnects: a request may already have been sent upstream, and its
 * outcome must be recorded.
 *
 * Until the effect ends, the request counts against the caller's quota.
 */
export const detached = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const release = Context.get(context, CurrentKeepCounted)()
    const ended = Effect.onExitPrimitive(effect, () => {
      release()
      return undefined
    })
    // interrupting the wait does not interrupt the fiber
    return Fiber.join(Effect.runForkWith(context)(ended))
  })
