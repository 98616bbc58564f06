/**
 * The responses and the account versions that replicas share, in a simulated Redis: what the commands of `ResponseCache`
 * and the scripts of `AccountVersions` do, in TypeScript.
 */
import * as AccountVersions from "@trigate/upstream/cache/AccountVersions"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as Layer from "effect/Layer"
import * as Access from "./Access.ts"

/** The keys of Redis, by kind. */
export interface State {
  readonly responses: Access.Keys<string>
  /** Under one key: the version of each slot, and the time of the last read under `read`. */
  readonly versions: Access.Keys<Map<string, number>>
  /** Under one key: the end time of each search, by signer. */
  readonly searches: Access.Keys<Map<string, number>>
  readonly roles: Access.Keys<string>
}

/** The cache in one simulated Redis. */
export type Store = Access.Disk<State>

/** Makes the store. Replicas that use it share their responses. */
export const make = (): Store =>
  Access.makeDisk((): State => ({ responses: new Map(), versions: new Map(), searches: new Map(), roles: new Map() }))

/** Returns the responses, as one replica reaches them. */
export const makeTexts = ({ current }: Store, access: Access.Access): ResponseCache.TextStore => ({
  get: (key) => Access.redis(access, (now) => Access.getKey(current().responses, key, now) ?? null),
  set: (key, text, milliseconds) =>
    Access.redis(access, (now) => Access.setKey(current().responses, key, text, now + milliseconds))
})

const day = 86_400_000
const empty = () => new Map<string, number>()

const countUp = (versions: Map<string, number>, slots: Iterable<string>): void => {
  for (const slot of slots) versions.set(slot, (versions.get(slot) ?? 0) + 1)
}

const read = (
  { searches, versions }: State,
  at: number,
  slots: ReadonlyArray<string>,
  now: number
): ReadonlyArray<string | null> | undefined => {
  let ended = 0
  Access.changeKey(searches, "", now, empty, (open) => {
    for (const [signer, until] of open) if (until <= at && open.delete(signer)) ended += 1
  })
  let found: ReadonlyArray<string | null> = []
  Access.changeKey(versions, "", now, empty, (held) => {
    held.set("read", at)
    if (!held.has("all")) held.set("all", at)
    if (ended > 0) countUp(held, ["all"])
    found = ["all", ...slots].map((slot) => {
      const version = held.get(slot)
      return version === undefined ? null : String(version)
    })
  })
  Access.expireKey(versions, "", now, now + day)
  return Access.getKey(searches, "", now) === undefined ? found : undefined
}

const search = ({ searches, versions }: State, at: number, signer: string, now: number): boolean => {
  const readAt = Access.getKey(versions, "", now)?.get("read")
  if (readAt === undefined || at - readAt > AccountVersions.cachedFor) return false
  Access.changeKey(searches, "", now, empty, (open) => open.set(signer, at + AccountVersions.searchFor))
  Access.expireKey(searches, "", now, now + day)
  return true
}

const change = ({ searches, versions }: State, signer: string, slots: Iterable<string>, now: number): void => {
  Access.changeKey(searches, "", now, empty, (open) => open.delete(signer))
  Access.changeKey(versions, "", now, empty, (held) => countUp(held, slots))
  Access.expireKey(versions, "", now, now + day)
}

/** Returns the account versions, as one replica reaches them. */
export const makeVersions = ({ current }: Store, access: Access.Access): AccountVersions.SharedVersions => ({
  read: (at, slots) => Access.redis(access, (now) => read(current(), at, slots, now)),
  search: (at, signer) => Access.redis(access, (now) => search(current(), at, signer, now)),
  change: (signer, slots) => Access.redis(access, (now) => change(current(), signer, slots, now)),
  role: (signer) => Access.redis(access, (now) => Access.getKey(current().roles, signer, now) ?? null),
  setRole: (signer, accounts, milliseconds) =>
    Access.redis(access, (now) => Access.setKey(current().roles, signer, accounts, now + milliseconds))
})

/**
 * Provides the account versions of one replica.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerVersions = (
  store: Store,
  access: Access.Access,
  options: Pick<ResponseCache.RedisOptions, "deadline"> = {}
): Layer.Layer<AccountVersions.AccountVersions> => AccountVersions.layerShared(options, makeVersions(store, access))

/**
 * Provides the cache of one replica, which shares responses and account versions.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Encoding } from "@trigate/domain"
 * import * as Access from "@trigate/simulation/unstable/stores/Access"
 * import * as RedisCache from "@trigate/simulation/unstable/stores/RedisCache"
 * import { AccountVersions } from "@trigate/upstream"
 * import { Console, Effect } from "effect"
 *
 * const replica = RedisCache.layerVersions(RedisCache.make(), Access.direct)
 *
 * const program = AccountVersions.AccountVersions.use(({ change, version }) =>
 *   Effect.flatMap(Effect.andThen(change("0x1", ["0x1"]), version(["0x1"], Encoding.longAgo)), (found) => Console.log(typeof found))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, replica))
 * ```
 * ```text
 * string
 * ```
 */
export const layer = (
  store: Store,
  access: Access.Access,
  options: ResponseCache.Options & Pick<ResponseCache.RedisOptions, "deadline"> = {}
): Layer.Layer<ResponseCache.ResponseCache> =>
  ResponseCache.layerShared(options, makeTexts(store, access)).pipe(
    Layer.provide(
      layerVersions(store, access, options.deadline === undefined ? {} : { deadline: options.deadline })
    )
  )
