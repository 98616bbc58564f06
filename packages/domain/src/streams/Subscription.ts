/**
 * A subscription is data: each stream of the venue's WebSocket is declared once, next to its schemas.
 *
 * Acknowledgements, the sharing of one upstream subscription by many callers, snapshots for late joiners, refills after a lost
 * connection, the typed service, the client, the sandbox and the documents are all read from these declarations.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../encoding/Json.ts"
import type { AnyCodec } from "../operations/Operation.ts"

/**
 * What a subscription sends.
 *
 * `state`: each frame is the whole state, so the latest one stands for those before it. `snapshot`: rows, of which the first frame
 * lists the latest with `isSnapshot: true`. `events`: rows that come once each.
 */
export type Delivery = "state" | "snapshot" | "events"

/** The rows of the frames of a subscription. */
export interface Rows {
  /** The member of `data` that lists the rows; `data` itself is the list when not given. */
  readonly member?: string
  /** Paths in a row whose values together tell it from every other row; the whole row when empty. */
  readonly id: ReadonlyArray<string>
  /** The path in a row of its time, in milliseconds. */
  readonly time: string
  /** The number of rows that a late joiner receives; 0 when the venue sends none at first. */
  readonly replayed: number
}

/** What fills the hole that a lost connection leaves in a stream. */
export interface Refill {
  /** The query of `POST /info` that returns the missed rows. */
  readonly query: string
  /** Refills run one after another, the lowest rank first. */
  readonly rank: number
  /** Whether the query returns only a part of the missed rows. */
  readonly isPartial?: true
}

/** A query of `POST /info` whose response a frame contains. */
export interface AnsweredQuery {
  readonly query: string
  /** The member of `data` that is the response. The rows of a subscription that is logged are the response where it is not given. */
  readonly member?: string
  /** Whether the response lists the members of orders that are set, as `openOrders` does. */
  readonly isBrief?: true
  /** The members of rows that only a change of the account changes, by which a response is compared with a later one. */
  readonly compared?: {
    /** The path of the rows in the response. */
    readonly rows: string
    readonly members: ReadonlyArray<string>
  }
}

/** The declaration of one subscription. */
export interface Subscription<
  Name extends string = string,
  Request extends AnyCodec = AnyCodec,
  Item extends AnyCodec = AnyCodec
> {
  /** The venue's own name of the subscription. */
  readonly name: Name
  /** The channel of its frames, of which some have several; its name when not given. */
  readonly channels?: ReadonlyArray<string>
  /** One sentence for the documents. */
  readonly summary: string
  /** Whether it names a user. The venue counts the distinct users of all subscriptions. */
  readonly about: "market" | "user"
  readonly delivery: Delivery
  /** Its members besides `type`. Decoding fills in the venue's defaults, in the order of its acknowledgements. */
  readonly request: Request
  /** What typed streams emit: the member `data` of a frame, or an element of it. */
  readonly item: Item
  /** Whether `data` is a list of items. */
  readonly isList?: true
  /**
   * The path in `data` at which a frame shows a member of the request.
   *
   * Two subscriptions that differ only in members which no frame shows cannot share a connection: their frames are
   * indistinguishable.
   */
  readonly shown: { readonly [member: string]: string }
  /** The path in `data` that identifies a state within a subscription. Of each state the latest frame counts. */
  readonly stateAt?: string
  readonly rows?: Rows
  /** Whether the venue sends frames at a steady pace, so that silence means a fault. */
  readonly isSteady?: true
  /** Whether a caller who joins later cannot be brought up to date: each caller then gets an upstream subscription of its own. */
  readonly isUnshared?: true
  readonly refill?: Refill
  /** Whether its rows are in the event log of watched accounts, from which streams are resumed. */
  readonly isLogged?: true
  /** The queries whose responses its frames contain, for watched accounts. They name the members that its frames show. */
  readonly answers?: ReadonlyArray<AnsweredQuery>
  readonly example: Request["Encoded"]
}

/** Domain type of the request of a subscription. */
export type Request<S extends Subscription> = S["request"]["Type"]
/** Domain type of what a subscription emits. */
export type Item<S extends Subscription> = S["item"]["Type"]

/** Declares a subscription. */
export const subscription = <
  const Name extends string,
  Request extends AnyCodec,
  Item extends AnyCodec
>(declaration: Subscription<Name, Request, Item>): Subscription<Name, Request, Item> => declaration

/** The channels on which the frames of a subscription arrive. */
export const channelNames = ({ channels, name }: Subscription): ReadonlyArray<string> => channels ?? [name]

/** A subscription with its defaults filled in. */
export interface Normalised {
  readonly declaration: Subscription
  readonly request: { readonly [member: string]: unknown }
  /** Its JSON as the venue acknowledges it. Two subscriptions are the same if their keys are. */
  readonly key: string
}

/** Why a value is not a subscription: its type is not declared, or its members are invalid. */
export type Unreadable = "unknown type" | "invalid"

/** Returns the value at a path such as `userState.user` or `0.coin`; `undefined` if the path does not exist. */
export const valueAt = (value: unknown, path: string): unknown => {
  let found = value
  for (const member of path === "" ? [] : path.split(".")) {
    found = Predicate.isObjectOrArray(found) ? Reflect.get(found, member) : undefined
  }
  return found
}

const asRecord = (value: unknown): { readonly [member: string]: unknown } =>
  Predicate.isObject(value) ? { ...value } : {}

/** Returns the reader of the subscriptions of a table. */
export const reader = (table: Iterable<Subscription>) => {
  const known = new Map(
    [...table].map((declaration) => [declaration.name, {
      declaration,
      decode: Schema.decodeUnknownResult(declaration.request)
    }])
  )
  return (value: unknown): Result.Result<Normalised, Unreadable> => {
    const { type, ...members } = asRecord(value)
    const found = Predicate.isString(type) ? known.get(type) : undefined
    if (found === undefined) return Result.fail("unknown type")
    const { declaration, decode } = found
    return Result.match(decode(members), {
      onFailure: () => Result.fail("invalid"),
      onSuccess: (decoded) => {
        const request = asRecord(decoded)
        return Result.succeed({ declaration, request, key: Json.stringify({ type, ...request }) })
      }
    })
  }
}
