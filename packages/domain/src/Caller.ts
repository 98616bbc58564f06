/** The caller of a request, its scope, and its quota. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Schema from "effect/Schema"
import { chains } from "./Chain.ts"
import { Address } from "./encoding/Hex.ts"

/** The name of a caller: safe in a log, a list, a path and a command line without escaping. */
export const CallerName = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/u))

const Positive = Schema.Finite.check(Schema.isGreaterThan(0))
const Count = Schema.Int.check(Schema.isGreaterThan(0))

/**
 * What a caller may ask for. A member that is absent allows everything of its kind, except `admin`, which must be named.
 *
 * A caller with `signers` sends no transactions of a node: the gateway does not tell who signed them.
 */
export const Scope = Schema.Struct({
  chains: Schema.optionalKey(Schema.Array(Schema.Literals(chains))),
  /** `sign` covers signed actions and transactions; `inspect` the dry run; `admin` the routes of the admin listener. */
  classes: Schema.optionalKey(Schema.Array(Schema.Literals(["read", "sign", "inspect", "admin"]))),
  /** Action types, query types and methods by their upstream's own names. */
  operations: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The signers whose actions the caller may send. */
  signers: Schema.optionalKey(Schema.Array(Address))
})

/** What a caller may ask for. */
export type Scope = typeof Scope.Type

/** How much a caller may use. A member that is absent sets no limit. */
export const Quota = Schema.Struct({
  requestsPerSecond: Schema.optionalKey(Positive),
  /** Requests that may come at once before `requestsPerSecond` counts. */
  burst: Schema.optionalKey(Count),
  /** Weight a minute of the official API. */
  weightPerMinute: Schema.optionalKey(Positive),
  /** Request units a second of the nodes. */
  unitsPerSecond: Schema.optionalKey(Positive),
  concurrentCalls: Schema.optionalKey(Count),
  /** WebSockets that may be open at the same time. */
  sockets: Schema.optionalKey(Count),
  /** Subscriptions of one WebSocket. */
  subscriptions: Schema.optionalKey(Count),
  /** Messages in a minute over one WebSocket. */
  messagesPerMinute: Schema.optionalKey(Count)
})

/** How much a caller may use. */
export type Quota = typeof Quota.Type

/** The caller of a request: a key's owner, a client address, or this program. */
export interface Caller {
  /** Distinguishes callers, and stays the same while keys rotate: `key:` and a name, or `address:` and an IP address. */
  readonly id: string
  /** Prefix of the key that the request carries, for logs; absent where it carries none. */
  readonly key?: string
  readonly scope: Scope
  readonly quota: Quota
}

/** The program itself: it may do everything that its layers can do. */
export const local: Caller = { id: "local", scope: {}, quota: {} }

/** The caller for whom a fiber works; the program itself unless a request provides another one. */
export const CurrentCaller = Context.Reference<Caller>("@trigate/domain/CurrentCaller", { defaultValue: () => local })

/** Keeps a call counted against the quota of its caller until the function that it returns is called. */
export type KeepCounted = () => () => void

/** Keeps the call of a fiber counted; does nothing where no quota counts it. */
export const CurrentKeepCounted = Context.Reference<KeepCounted>("@trigate/domain/CurrentKeepCounted", {
  defaultValue: () => () => constVoid
})

/**
 * Runs an effect to its end, also when its caller leaves: bytes may have been sent by then, and their outcome has to be recorded.
 *
 * The quota of the caller counts it until it ends.
 */
export const detached = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const release = fiber.getRef(CurrentKeepCounted)()
    return Effect.flatMap(
      Effect.forkDetach(Effect.ensuring(effect, Effect.sync(release)), { startImmediately: true }),
      Fiber.join
    )
  })
