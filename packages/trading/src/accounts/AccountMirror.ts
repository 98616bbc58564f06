/**
 * Serves queries about watched accounts from the states that the venue pushes, without using rate-limit weight.
 *
 * A received state is cached as the response to the queries that the state's subscription declares. It is cached under
 * the account's version (a counter) at the time of receipt. Each action and each logged event of the account increments
 * the version, so older states are no longer served. A state received immediately after a change can be older than the
 * change, and is not used.
 *
 * The response to `userFills` begins with the venue's response to that query; later fills are added from the event log.
 */
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { briefOrder } from "@trigate/domain/info/Account"
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import { rowsOfOrders } from "@trigate/domain/unstable/info/InfoQueries"
import { type ServedQuery, type Subscription, valueAt } from "@trigate/domain/unstable/streams/Subscription"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import type { AccountVersions } from "@trigate/upstream/cache/AccountVersions"
import type { Receipt } from "@trigate/upstream/cache/ResponseCache"
import { type Frame, type Row, RowSet } from "@trigate/upstream/unstable/streams/Topic"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { parseRow } from "../streams/VenueProtocol.ts"
import type { AccountEvents, Entry, StateObserver } from "./AccountEvents.ts"

/**
 * The queries that the account mirror serves, by name, each with the subscription whose frames contain its response.
 */
export const servedQueries: ReadonlyMap<string, { readonly declaration: Subscription; readonly served: ServedQuery }> =
  new Map(
    Subscriptions.table.flatMap((declaration) =>
      (declaration.servedQueries ?? []).map((served) => [served.query, { declaration, served }] as const)
    )
  )

/** A query that the account mirror can serve. */
export interface MirroredQuery {
  readonly user: string
  /** The key of the subscription whose frames contain the response to the query. */
  readonly topicKey: string
  /** Whether the subscription is opened for every watched account. */
  readonly isRecorded: boolean
}

/**
 * Returns the key of a user's subscription, with the venue's default values for its other parameters. Returns
 * `undefined` if the subscription requires a further parameter, such as a coin.
 */
export const topicKey = (type: string, user: string): string | undefined =>
  Result.getOrUndefined(Subscriptions.read({ type, user }))?.key

const anyUser = `0x${"0".repeat(40)}`

/**
 * Returns the names of the subscriptions whose frames contain responses to queries. If `isRecorded` is true, returns
 * only the subscriptions that are opened for every watched account; otherwise only those that callers open.
 */
export const stateNames = (isRecorded: boolean): ReadonlyArray<string> =>
  Subscriptions.table.flatMap(({ delivery, name, servedQueries }) =>
    servedQueries !== undefined && delivery === "state" && (topicKey(name, anyUser) !== undefined) === isRecorded
      ? [name]
      : []
  )

/**
 * Returns the account and the subscription of a query that the account mirror can serve; `undefined` for any other
 * query.
 */
export const mirroredQuery = ({ body, operation, surface }: InfoOperations.InfoCall): MirroredQuery | undefined => {
  const found = servedQueries.get(operation.name)
  const query = body.valueOrUndefined
  if (found === undefined || surface !== "gateway" || !Predicate.isObject(query)) return undefined
  const { name, shown } = found.declaration
  const members = Object.entries(query).filter(([member]) => member !== "type")
  if (!members.every(([member, value]) => member in shown && Predicate.isString(value))) return undefined
  const read = Result.getOrUndefined(Subscriptions.read({ ...query, type: name }))
  const user = read?.request["user"]
  if (read === undefined || !Predicate.isString(user)) return undefined
  const recorded = topicKey(name, user)
  return recorded === undefined || recorded === read.key
    ? { user, topicKey: read.key, isRecorded: recorded !== undefined }
    : undefined
}

/**
 * Returns the detailed variant of a brief query: `frontendOpenOrders` for `openOrders`. The detailed response contains
 * all data of the brief response.
 */
export const detailedQuery = (query: string): string | undefined => {
  const brief = servedQueries.get(query)
  return brief?.served.isBrief === true
    ? brief.declaration.servedQueries?.find(({ isBrief, member }) => isBrief !== true && member === brief.served.member)
      ?.query
    : undefined
}

/** Converts the orders in the response to a detailed query to the response to the brief query. */
const briefOrders = (orders: string): string => {
  const rows = (Encoding.elements(orders) ?? []).map((order) =>
    Encoding.stringify(briefOrder(Result.getOrUndefined(Encoding.parse(order))))
  )
  return `[${rows.join(",")}]`
}

/** Converts the response to a detailed query to the response to its brief variant. */
export const brief = (response: Operation.UpstreamResponse): Operation.UpstreamResponse =>
  response.status === 200 ? response.with({ body: Encoding.encode(briefOrders(response.text)) }) : response

/** Parses a query that the account mirror itself makes, and that is therefore always valid. */
export const parseQuery = (body: Encoding.Json): Effect.Effect<InfoOperations.InfoCall> =>
  Effect.orDie(InfoOperations.parseCall(body, "gateway", true))

/** Returns the query whose response the frames of a subscription contain. */
export const queryFor = (type: string, key: string) => {
  const request = Result.getOrUndefined(Encoding.parse(key))
  const members = Object.keys(servedQueries.get(type)?.declaration.shown ?? {})
  return { type, ...Object.fromEntries(members.map((member) => [member, valueAt(request, member)])) }
}

/**
 * Returns the responses that a frame contains, by query. Omits the responses to brief queries, because they are derived
 * from the detailed responses at each read.
 */
export const responsesIn = ({ text, topic }: Frame): ReadonlyArray<readonly [query: string, json: string]> => {
  const data = Encoding.members(text).get("data")
  const members = data === undefined ? undefined : Encoding.members(text, data.start)
  return [...servedQueries].flatMap(([query, { served, declaration }]) => {
    if (declaration.name !== topic.name || served.member === undefined || served.isBrief === true) return []
    const span = served.member === "" ? data : members?.get(served.member)
    return span === undefined ? [] : [[query, text.slice(span.start, span.end)] as const]
  })
}

/** The functions of the response cache, for use by the account mirror. */
export interface Port {
  readonly put: (
    call: InfoOperations.InfoCall,
    response: Operation.UpstreamResponse,
    receipt: Receipt
  ) => Effect.Effect<void>
  readonly accounts: AccountVersions["Service"]
}

/** The source of the account mirror's states and events. */
export interface Source {
  readonly events: AccountEvents
  /**
   * Returns the time at which the connection of a subscription last received a frame; `undefined`
   * while the subscription is not live.
   */
  readonly heardAt: (topicKey: string) => Encoding.MonotonicTime | undefined
}

/** The states of an account that were received from the venue. */
export interface MirroredStates {
  /**
   * The number of known changes of the account: the events in the event log, plus the increments of the account's
   * version (a counter) that no logged event caused.
   */
  readonly changes: number
  /** The time of the last observed change. */
  readonly changedAt: Encoding.MonotonicTime
  /** The latest frame of each subscription, by the subscription's name. */
  readonly frames: ReadonlyMap<string, Frame>
}

interface MirroredAccount {
  readonly user: string
  readonly frames: Map<string, Frame>
  changes: number
  version: string | undefined
  /** The time of the last observed change, in milliseconds. */
  changedAt: Encoding.MonotonicTime
  /** The time, in milliseconds, of the last observed change that no logged event reported. */
  actedAt: Encoding.MonotonicTime
  /** The latest fills, newest first. */
  fills: ReadonlyArray<Row> | undefined
}

/**
 * Maximum number of milliseconds by which a state may lag behind the frames of another subscription or behind a
 * response.
 */
const settleFor = 2000

type Reads = typeof InfoOperations.reads

const { userFills } = Subscriptions.subscriptions

/** Decodes the rows of a response to `userFills`. */
const readFills = (response: string): ReadonlyArray<Row> =>
  (Encoding.elements(response) ?? []).map((text) => parseRow(userFills.name, text))

/**
 * Adds newer rows (oldest first) to a list of fills. Skips rows that the list already contains, and rows that are older
 * than the newest fill in the list.
 */
const withNewer = (fills: ReadonlyArray<Row>, rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  const newest = fills[0]?.time ?? Number.NEGATIVE_INFINITY
  const isRecent = ({ time }: Row): boolean => time >= newest
  const newer = new RowSet(fills.filter(isRecent)).unseen(rows.filter(isRecent))
  return newer.length === 0 ? fills : [...newer.toReversed(), ...fills].slice(0, rowsOfOrders)
}

/**
 * Makes an account mirror. `age` is the maximum age, in milliseconds, of the responses that it serves. The mirror's
 * fibers end when the scope closes.
 */
export const make = Effect.fnUntraced(function*(age: number) {
  const clock = yield* Clock.Clock
  const scope = yield* Scope.Scope
  const fork = Effect.runForkWith(yield* Effect.context())
  const background = (effect: Effect.Effect<void>) => void Fiber.runIn(fork(effect), scope)
  const now = () => Encoding.monotonicTime(clock)
  const accounts = new Map<string, MirroredAccount>()
  const observed = new Set(stateNames(false))
  let port: Port | undefined
  let source: Source | undefined

  const accountFor = (user: string): MirroredAccount => {
    const account = accounts.get(user) ?? {
      user,
      frames: new Map(),
      changes: 0,
      version: undefined,
      changedAt: now(),
      actedAt: now(),
      fills: undefined
    }
    accounts.set(user, account)
    return account
  }

  const isRecording = ({ user }: MirroredAccount): boolean => source?.events.isRecording(user) === true

  /**
   * Reads the version (a counter) of an account. If the version has changed although no event was logged, records a
   * change of the account.
   */
  const readVersion = (account: MirroredAccount, { accounts }: Port): Effect.Effect<string | undefined> =>
    Effect.map(Effect.suspend(() => accounts.version([account.user], now())), (version) => {
      if (version !== account.version) {
        account.version = version
        account.changes++
        account.changedAt = now()
        account.actedAt = now()
      }
      return version
    })

  const put = Effect.fnUntraced(
    function*({ put }: Port, key: string, query: string, json: string, receipt: Receipt) {
      const call = yield* parseQuery(Encoding.write(queryFor(query, key)))
      yield* put(call, Operation.json("trading-api", 200, json), receipt)
    }
  )

  /**
   * Caches the fills in the event log as the response to `userFills`. The age of that response is counted from the last
   * frame on the connection that delivers fills.
   */
  const putFills = (account: MirroredAccount, to: Port, version: string): Effect.Effect<void> => {
    const { actedAt, fills, user } = account
    const key = topicKey(userFills.name, user) ?? ""
    const readAt = source?.heardAt(key)
    return fills === undefined || readAt === undefined || Encoding.millisBetween(actedAt, readAt) < settleFor ||
        !isRecording(account)
      ? Effect.void
      : put(to, key, "userFills", `[${fills.map(({ text }) => text).join(",")}]`, { readAt, version })
  }

  const received = (user: string, frame: Frame): void => {
    const account = accountFor(user)
    account.frames.set(frame.topic.name, frame)
    const to = port
    if (to === undefined) return
    const { receivedAt: readAt = Encoding.longAgo } = frame
    background(Effect.flatMap(readVersion(account, to), (version) => {
      if (version === undefined || !isRecording(account)) return Effect.void
      const isSettled = Encoding.millisBetween(account.changedAt, readAt) >= settleFor
      return Effect.andThen(
        Effect.forEach(
          isSettled ? responsesIn(frame) : [],
          ([query, json]) => put(to, frame.topic.key, query, json, { readAt, version }),
          { discard: true }
        ),
        putFills(account, to, version)
      )
    }))
  }

  /**
   * Sets a new version for an account whose state has changed. Called after an event of the account is stored in the
   * event log, and when events may be missing.
   */
  const change = (account: MirroredAccount): void => {
    const to = port
    account.changes++
    account.changedAt = now()
    if (to === undefined) return
    background(Effect.gen(function*() {
      yield* readVersion(account, to)
      yield* to.accounts.invalidate([account.user])
      account.version = yield* to.accounts.version([account.user], now())
      account.changedAt = now()
      if (account.version !== undefined) yield* putFills(account, to, account.version)
    }))
  }

  const empty = (user: string): void => {
    const account = accountFor(user)
    account.frames.clear()
    account.fills = undefined
    change(account)
  }

  /**
   * Returns whether the replica that records an account shares cached responses and account versions with this replica.
   */
  const isShared = (user: string): boolean =>
    source?.events.backing === "Redis" && source.events.isLive(user) && !source.events.isRecording(user)

  const appended = (entry: Entry): void => {
    if (entry.kind === "past") return
    // callers of this replica receive the event perhaps before the recording replica has set a new version
    const account = isShared(entry.user) ? undefined : accounts.get(entry.user)
    if (account === undefined) return background(port?.accounts.invalidate([entry.user]) ?? Effect.void)
    if (entry.kind === "begin") account.fills = undefined
    if (entry.name === userFills.name && account.fills !== undefined) {
      account.fills = withNewer(account.fills, entry.rows)
    }
    change(account)
  }

  /** Returns whether this process has current states from which it can serve a query. */
  const isMirrored = ({ isRecorded, topicKey: key, user }: MirroredQuery): boolean =>
    source?.events.isRecording(user) === true
      ? isRecorded || source.heardAt(key) !== undefined
      : isRecorded && isShared(user)

  const longer = (policy: Operation.CachePolicy | undefined): Operation.CachePolicy => {
    const { fresh = 0, staleIfError = 0, staleIfLimited = 0 } = policy ?? {}
    return { fresh: Math.max(fresh, age), staleIfError, staleIfLimited: Math.max(0, fresh + staleIfLimited - age) }
  }

  return {
    observer: {
      names: stateNames(true),
      received,
      ended: (user) => {
        empty(user)
        accounts.delete(user)
      }
    } satisfies StateObserver,
    /**
     * Receives a frame of a subscription that a caller opened. Ignores a frame that contains no response to a query about
     * a watched account.
     */
    observe: (frame: Frame): void => {
      const { name, user } = frame.topic
      if (user !== undefined && observed.has(name) && source?.events.isRecording(user) === true) received(user, frame)
    },
    /** Returns cache options that limit the age of responses about watched accounts to the mirror's maximum age. */
    reads: (reads: Reads): Reads => ({
      ...reads,
      key: (call) => {
        const query = mirroredQuery(call)
        return query === undefined ? reads.key(call) : `mirrored ${query.topicKey}`
      },
      cachePolicy: (call, at, onRequest) => {
        const policy = reads.cachePolicy(call, at, onRequest)
        const query = mirroredQuery(call)
        return query !== undefined && isMirrored(query) ? longer(policy) : policy
      }
    }),
    /**
     * Returns the detailed variant of a query about a watched account, so that one request to the venue serves both the
     * detailed and the brief query; `MirroredQueries.brief` converts the response. Returns `undefined` for any other query.
     */
    detailed: (call: InfoOperations.InfoCall): Effect.Effect<InfoOperations.InfoCall> | undefined => {
      const type = detailedQuery(call.operation.name)
      const query = type === undefined ? undefined : mirroredQuery(call)
      return query === undefined || !isMirrored(query)
        ? undefined
        : parseQuery(Encoding.write({ ...Object(call.body.valueOrUndefined), type }))
    },
    /** Starts to cache states as responses, with the given functions of the response cache. */
    connect: (next: Port): void => {
      port = next
    },
    /** Stores the fills of an account from the venue's response. */
    learn: (call: InfoOperations.InfoCall, { status, text }: Operation.UpstreamResponse): void => {
      const query = call.operation.name === "userFills" && status === 200 ? mirroredQuery(call) : undefined
      const account = query && accounts.get(query.user)
      if (account === undefined || source === undefined || !isRecording(account)) return
      const logged = source.events.log.newest(account.user, userFills.name, rowsOfOrders)
      account.fills = withNewer(readFills(text), logged)
    },
    /** Starts to read the events of the given source. */
    follow: (next: Source): void => {
      source = next
      next.events.log.listen({
        appended,
        replaced: () => {
          for (const user of accounts.keys()) empty(user)
        }
      })
    },
    states: (user: string): MirroredStates | undefined => accounts.get(user),
    /** Deletes the states of an account: the mirror serves none until new ones are received. */
    empty
  }
})

/** Serves queries about watched accounts. */
export type AccountMirror = Effect.Success<ReturnType<typeof make>>
