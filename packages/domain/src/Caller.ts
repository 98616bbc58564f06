/** The caller of a request, its scope, and its quota. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Schema from "effect/Schema"
import { chains } from "./Chain.ts"
import { Address } from "./encoding/Hex.ts"

/** The name of a caller: safe in logs, lists, paths and command lines without escaping. */
export const CallerName = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/u))

const Positive = Schema.Finite.check(Schema.isGreaterThan(0))
const Count = Schema.Int.check(Schema.isGreaterThan(0))

/**
 * The permissions of a caller. An absent member allows everything of its kind, except the class `admin`, which must be
 * listed.
 *
 * A caller with `signers` cannot send node transactions: the gateway does not recover their signers.
 */
export const Scope = Schema.Struct({
  chains: Schema.optionalKey(Schema.Array(Schema.Literals(chains))),
  /** `sign` covers signed actions and transactions; `inspect` the dry run; `admin` the routes of the admin listener. */
  classes: Schema.optionalKey(Schema.Array(Schema.Literals(["read", "sign", "inspect", "admin"]))),
  /** Action types, query types and methods, by the upstream's names. */
  operations: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The signers whose actions the caller may send. */
  signers: Schema.optionalKey(Schema.Array(Address))
})

/** The permissions of a caller. */
export type Scope = typeof Scope.Type

/** The quota of a caller. An absent member sets no limit. */
export const Quota = Schema.Struct({
  requestsPerSecond: Schema.optionalKey(Positive),
  /** Maximum burst of requests beyond `requestsPerSecond`. */
  burst: Schema.optionalKey(Count),
  /** Official API weight per minute. */
  weightPerMinute: Schema.optionalKey(Positive),
  /** Node request units per second. */
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

/** The caller of a request: a key's owner, a client address, or this program. */
export interface Caller {
  /** Identifies the caller across key rotations: `key:` and a name, or `address:` and an IP address. */
  readonly id: string
  /** Prefix of the caller's key, for logs; absent for a caller without a key. */
  readonly key?: string
  readonly scope: Scope
  readonly quota: Quota
}

/** The program itself, without restrictions. */
export const local: Caller = { id: "local", scope: {}, quota: {} }

/** The caller for whom a fiber runs. Default: the program itself. */
export const CurrentCaller = Context.Reference<Caller>("@trigate/domain/CurrentCaller", { defaultValue: () => local })

/** Counts a call against its caller's quota until the returned function is called. */
export type KeepCounted = () => () => void

/** Counts the call of the current fiber. Default: does nothing. */
export const CurrentKeepCounted = Context.Reference<KeepCounted>("@trigate/domain/CurrentKeepCounted", {
  defaultValue: () => () => constVoid
})

/**
 * Runs an effect to completion even if its caller disconnects: bytes may have been sent, and their outcome has to be recorded.
 *
 * The caller's quota counts the call until it ends.
 */
export const detached = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const release = fiber.getRef(CurrentKeepCounted)()
    return Effect.flatMap(
      Effect.forkDetach(Effect.ensuring(effect, Effect.sync(release)), { startImmediately: true }),
      Fiber.join
    )
  })
