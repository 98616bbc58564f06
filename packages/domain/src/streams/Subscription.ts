/**
 * Declarations of subscriptions: each stream of the venue's WebSocket is declared once, next to its schemas. Also
 * decodes their frames, and the positions from which a stream resumes.
 *
 * Acknowledgements, the sharing of one upstream subscription between callers, snapshots for callers that join later,
 * refills (queries for the rows missed while the connection was lost), the typed service, the client, the sandbox and
 * the documentation are all derived from these declarations.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Json from "../encoding/Encoding.ts"
import type { AnyCodec } from "../operations/Operation.ts"

/**
 * The subscription was refused. `message` is the error text of the venue or of the gateway.
 *
 * @since 0.1.0
 * @category errors
 */
export class SubscriptionRefused extends Schema.TaggedError<SubscriptionRefused>()("SubscriptionRefused", {
  message: Schema.String,
  subscription: Schema.String
}) {}

/**
 * A frame of the stream does not decode. The typed stream ends. Callers of `/ws` receive such a frame unchanged.
 *
 * @since 0.1.0
 * @category errors
 */
export class MalformedFrame extends Schema.TaggedError<MalformedFrame>()("MalformedFrame", {
  message: Schema.String,
  frame: Schema.String
}) {}

/**
 * The reader of the stream is too slow: its queue is full, and events would have to be dropped.
 *
 * @since 0.1.0
 * @category errors
 */
export class SlowConsumer extends Schema.TaggedError<SlowConsumer>()("SlowConsumer", { message: Schema.String }) {}

/**
 * The connection of the stream was lost or could not be opened. To continue without a gap, query the events since the
 * last received frame.
 *
 * @since 0.1.0
 * @category errors
 */
export class StreamLost extends Schema.TaggedError<StreamLost>()("StreamLost", {
  /** The close code; 1006 if the connection closed without one. */
  code: Schema.Int,
  message: Schema.String
}) {}

/** The errors of a typed stream. */
export type StreamError = SubscriptionRefused | MalformedFrame | SlowConsumer

/** Makes the schema of a member that has a default value. */
export const orElse = <S extends Schema.Top & Schema.Codec<unknown, unknown>>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

/** An address, converted to lower case as in the venue's acknowledgements. */
export const User = Json.Address.pipe(
  Schema.decodeTo(Schema.toType(Json.Address), {
    decode: SchemaGetter.transform(Json.lowerCase),
    encode: SchemaGetter.passthrough()
  })
)

export const Coin = Schema.String.check(Schema.isBetweenLength(1, 64))

const dex = orElse(
  Schema.NullOr(Schema.String.check(Schema.isMaxLength(32))).pipe(
    Schema.decodeTo(Schema.String, {
      decode: SchemaGetter.transform((name) => name ?? ""),
      encode: SchemaGetter.passthrough()
    })
  ),
  ""
)

/** A boolean member with default `false`. */
export const off = orElse(
  Schema.NullOr(Schema.Boolean).pipe(
    Schema.decodeTo(Schema.Boolean, {
      decode: SchemaGetter.transform((isOn) => isOn ?? false),
      encode: SchemaGetter.passthrough()
    })
  ),
  false
)

export const nothing = Schema.Struct({})
export const ofCoin = Schema.Struct({ coin: Coin })
export const ofUser = Schema.Struct({ user: User })
export const ofUserInDex = Schema.Struct({ user: User, dex })
export const ofDex = Schema.Struct({ dex })

/**
 * How a subscription delivers data.
 *
 * `state`: each frame is the whole state, so the latest frame replaces earlier ones. `snapshot`: each frame lists rows,
 * such as fills; the first frame lists the latest rows and has `isSnapshot: true`. `events`: each frame lists rows;
 * each row is sent once.
 */
export type Delivery = "state" | "snapshot" | "events"

/** The rows, such as fills, in the frames of a subscription. */
export interface Rows {
  /** The member of `data` that lists the rows. If it is absent, `data` itself is the list. */
  readonly member?: string
  /**
   * The paths in a row whose values together identify the event: two events never have equal values there, for the
   * reason beside each declaration. If there are no paths, rows of one time are compared as a whole.
   *
   * A row repeats another only if their other members agree as well, so an event is not lost if the reason is wrong.
   */
  readonly id: ReadonlyArray<string>
  /** The path of the time in a row. The time is in milliseconds, or in seconds if `isInSeconds` is set. */
  readonly time: string
  readonly isInSeconds?: true
  /**
   * The number of rows in the snapshot for a caller that joins an existing shared subscription; 0 if the venue sends no
   * initial rows.
   */
  readonly replayed: number
}

/** The query that returns the rows missed while the connection was lost. */
export interface Refill {
  /** The query of `POST /info` that returns the missed rows. */
  readonly query: string
  /** Rank of the query. After a lost connection, the refill queries run one after another, the lowest rank first. */
  readonly rank: number
  /** Whether the query returns only some of the missed rows. */
  readonly isPartial?: true
  /** Whether the stream omits an order's empty members, although the query returns them. */
  readonly isBrief?: true
}

/** A query whose response is contained in the frames of a subscription. */
export interface ServedQuery {
  readonly query: string
  /**
   * The member of `data` that contains the response; empty if `data` itself is the response. Absent if the subscription
   * has `isLogged`: the response then consists of the subscription's logged rows.
   */
  readonly member?: string
  /** Whether the query's response omits an order's empty members, like the response of `openOrders`. */
  readonly isBrief?: true
  /**
   * Selects the parts of the response that change only if the account changes: the rows, and some members of each row.
   * The gateway compares only these parts with the venue's response, every five minutes.
   */
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
  /** The subscription's name at the venue. */
  readonly name: Name
  /** The channels of the subscription's frames. Default: the name of the subscription. */
  readonly channels?: ReadonlyArray<string>
  /** A description of the subscription in one sentence, for the documentation. */
  readonly summary: string
  /** The topic: a market or a user. The venue limits the number of distinct users over all subscriptions. */
  readonly about: "market" | "user"
  readonly delivery: Delivery
  /**
   * The members of a subscription request in addition to `type`. Decoding adds the venue's defaults, and orders the
   * members as in the venue's acknowledgements.
   */
  readonly request: Request
  /**
   * The schema of a typed stream's items. An item is the member `data` of a frame. If `isList` is set, each element of
   * `data` is an item.
   */
  readonly item: Item
  /** Whether `data` is a list of items. */
  readonly isList?: true
  /**
   * For each request member that a frame repeats: the member's path in `data`.
   *
   * Two subscriptions cannot share a connection if they differ only in members without a path here: their frames are
   * indistinguishable.
   */
  readonly shown: { readonly [member: string]: string }
  /**
   * The path, in `data`, of a value that distinguishes several states of one subscription, such as a bar's open time.
   * Only the latest frame for each value matters.
   */
  readonly stateAt?: string
  readonly rows?: Rows
  /** Whether the venue sends frames at regular intervals, so that silence indicates a fault. */
  readonly isSteady?: true
  /**
   * Whether each caller gets its own upstream subscription, because the current state cannot be sent to a caller that
   * joins later.
   */
  readonly isUnshared?: true
  readonly refill?: Refill
  /**
   * Whether the gateway logs the rows for watched accounts (`TRIGATE_WATCH_ACCOUNTS`), so that streams can resume from
   * the log.
   */
  readonly isLogged?: true
  /**
   * The queries whose responses the frames contain. For watched accounts (`TRIGATE_WATCH_ACCOUNTS`), the gateway
   * serves these queries from the frames. The parameters of such a query are the members in `shown`.
   */
  readonly servedQueries?: ReadonlyArray<ServedQuery>
  readonly example: Request["Encoded"]
}

/** The decoded request of a subscription. */
export type Request<S extends Subscription> = S["request"]["Type"]
/** The decoded item of a subscription. */
export type Item<S extends Subscription> = S["item"]["Type"]

/** Declares a subscription. */
export const subscription = <
  const Name extends string,
  Request extends AnyCodec,
  Item extends AnyCodec
>(declaration: Subscription<Name, Request, Item>): Subscription<Name, Request, Item> => declaration

/** Returns the channels of a subscription's frames. */
export const channelNames = ({ channels, name }: Subscription): ReadonlyArray<string> => channels ?? [name]

/** A subscription, with the venue's defaults for the members that the caller omitted. */
export interface Normalised {
  readonly declaration: Subscription
  readonly request: { readonly [member: string]: unknown }
  /**
   * The subscription as JSON, as in the venue's acknowledgement. Two subscriptions are the same if their keys are
   * equal.
   */
  readonly key: string
}

/** Why a value is not a subscription: unknown type, invalid members, or a member that the declaration lacks. */
export type Unreadable = "unknown type" | "invalid" | `unknown member ${string}`

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

/**
 * Makes a decoder for the subscriptions in a table. The decoder ignores the members that a declaration lacks, as the
 * venue does.
 */
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

/**
 * Makes a decoder for the subscriptions that clients request. The decoder refuses a member that has no effect: one that
 * the declaration lacks, and one that excludes another member. A member that is `null` counts as absent.
 */
export const requestReader =
  (read: ReturnType<typeof reader>) => (value: unknown): Result.Result<Normalised, Unreadable> =>
    Result.flatMap(read(value), (subscription) => {
      const unknown = Object.entries(asRecord(value)).find(([member, given]) =>
        member !== "type" && !Object.hasOwn(subscription.request, member) && given !== null && given !== undefined
      )
      return unknown === undefined ? Result.succeed(subscription) : Result.fail(`unknown member ${unknown[0]}` as const)
    })

/** Maximum number of characters that an error quotes from a frame, and from the frame's decoding error. */
const mostQuoted = 2000

/**
 * Makes the decoder for the items in a subscription's frames. The decoder fails with `MalformedFrame` for a frame that
 * does not decode.
 */
export const itemReader = (declaration: Subscription) => {
  const decode = Schema.decodeUnknownResult(
    declaration.isList === true ? Schema.Array(declaration.item) : Schema.Tuple([declaration.item])
  )
  return (text: string): Result.Result<ReadonlyArray<unknown>, MalformedFrame> => {
    const data = valueAt(Result.getOrUndefined(Json.parse(text)), "data")
    return Result.mapError(
      decode(declaration.isList === true ? data : [data]),
      (error) =>
        new MalformedFrame({
          message: `The venue sent a frame of ${declaration.name} that does not decode: ${error.message}`
            .slice(0, mostQuoted),
          frame: text.slice(0, mostQuoted)
        })
    )
  }
}

/** A position in an account's event log. */
export interface ResumePosition {
  /**
   * Identifies the event log. A new epoch begins when events may be missing from the log; sequence numbers are valid
   * within one epoch only.
   */
  readonly epoch: string
  /** The sequence number of the last received event. The first event has the number 1. */
  readonly seq: number
}

const pattern = /^(?<epoch>[0-9a-zA-Z-]{1,64}):(?<seq>[0-9]{1,15})$/u

/** Formats a position as `<epoch>:<seq>`. */
export const print = ({ epoch, seq }: ResumePosition): string => `${epoch}:${seq}`

/** Parses a position; `undefined` for malformed text. */
export const parse = (text: string): ResumePosition | undefined => {
  const { epoch, seq } = pattern.exec(text)?.groups ?? {}
  return epoch === undefined || seq === undefined ? undefined : { epoch, seq: Number(seq) }
}

/** Options of a stream of an account's events, whose position a program stores to continue after a restart. */
export interface ResumeOptions {
  /** The position after which the stream begins. It fails with `StreamLost` if events after this position may be missing. */
  readonly resumeFrom?: string | undefined
  /**
   * Receives each position after the items before it were consumed; from a gateway, at the latest with the next ping. A
   * program that stops earlier receives these items again.
   */
  readonly onPosition?: ((position: string) => void) | undefined
}

/**
 * Parses the position of {@link ResumeOptions}; `undefined` if there is none. Fails if the text is not a position of the
 * subscription's events.
 */
export const readResume = (
  { resumeFrom }: ResumeOptions,
  subscription: string
): Result.Result<ResumePosition | undefined, SubscriptionRefused> => {
  const position = resumeFrom === undefined ? undefined : parse(resumeFrom)
  return resumeFrom !== undefined && position === undefined
    ? Result.fail(new SubscriptionRefused({ message: "resumeFrom is not a position", subscription }))
    : Result.succeed(position)
}

/**
 * The first message of a stream: the stream's current position, and whether all events since the requested position
 * follow.
 */
export interface Resumption extends ResumePosition {
  readonly recovered: boolean
}

/** The value of `channel` in the frames that report whether a stream was resumed. */
export const channel = "resume"

/** Encodes a resumption report as JSON. */
export const printResumption = ({ epoch, recovered, seq }: Resumption): string =>
  JSON.stringify({ recovered, epoch, seq })

/** Returns a frame with a position added. */
export const withPosition = (frame: string, { epoch, seq }: ResumePosition): string =>
  `${frame.slice(0, -1)},"epoch":${JSON.stringify(epoch)},"seq":${seq}}`

/** Returns the resume position that a parsed frame contains, in the frame's own members or in its `data`. */
export const ofFrame = (frame: unknown): ResumePosition | undefined => {
  const isResumption = valueAt(frame, "channel") === channel
  const epoch = valueAt(frame, isResumption ? "data.epoch" : "epoch")
  const seq = valueAt(frame, isResumption ? "data.seq" : "seq")
  return parse(`${Json.stringify(epoch ?? "").replaceAll("\"", "")}:${Json.stringify(seq ?? "")}`)
}
