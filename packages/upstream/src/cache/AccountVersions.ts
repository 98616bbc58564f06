/**
 * Versions of account state, so that a response from before an action is not served after that action.
 *
 * The version is part of the key under which a response is cached and equal reads are coalesced. A change of the
 * account changes that key, so later reads use neither an older cached response nor a read that was in flight.
 *
 * An action also changes the account for which its signer acts, such as the master account of an API wallet. If that
 * account is unknown, the gateway searches for it. During the search, which lasts up to 2 seconds, no read of account
 * state is served from the cache or coalesced. If the search fails, all accounts get a new version.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"

/**
 * The version of one or more accounts; empty if none of them has changed. `undefined` while reads of these accounts'
 * states must be neither cached nor coalesced.
 */
export type Version = string | undefined

/**
 * Versions of accounts, by lower-case address.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { AccountVersions } from "@trigate/upstream"
 * import { Console, Effect } from "effect"
 *
 * const account = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 *
 * const program = Effect.gen(function*() {
 *   const { change, version } = yield* AccountVersions.AccountVersions
 *   const isUnknown = yield* change(account, [])
 *   yield* Console.log(typeof (yield* version([account], 0)), isUnknown)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, AccountVersions.layerMemory()))
 * ```
 * ```text
 * string false
 * ```
 */
export class AccountVersions extends Context.Service<AccountVersions, {
  /**
   * Returns the version of accounts; `now` is the time in milliseconds. The effect is synchronous unless it has to
   * query a shared store.
   */
  readonly version: (accounts: ReadonlyArray<string>, now: number) => Effect.Effect<Version>
  /**
   * Sets a new version for the given accounts, and for the accounts for which `signer` acts.
   *
   * If the accounts of the signer are unknown, starts a search for them and returns `true`; the search ends when
   * `learn` names the accounts. Starts no search if no account state was read in the last minute, because no account
   * state is cached then.
   */
  readonly change: (signer: string, accounts: ReadonlyArray<string>) => Effect.Effect<boolean>
  /** Sets a new version for accounts whose state changed without an action of this gateway. */
  readonly invalidate: (accounts: ReadonlyArray<string>) => Effect.Effect<void>
  /**
   * Records the accounts for which a signer acts in addition to its own account, and ends the search for these
   * accounts.
   */
  readonly learn: (signer: string, accounts: ReadonlyArray<string>) => Effect.Effect<void>
}>()("@trigate/upstream/cache/AccountVersions") {}

/** The maximum duration of a search for a signer's accounts, in milliseconds. */
export const searchFor = 2000

/** Maximum milliseconds for which a response about an account can be cached. */
export const cachedFor = 60_000

/**
 * Returns the slot in which the version of an account is stored. There are only 4096 slots, which limits memory. If two
 * accounts share a slot, a change of one account only costs an additional read of the other.
 */
export const versionSlot = (account: string): string => account.slice(-3)

/**
 * Joins stored versions with dots into one version; a missing version is empty text. `versions` contains the version of
 * each account in question, and the version that applies to all accounts. Returns empty text if none of them is stored.
 */
export const printVersion = (versions: ReadonlyArray<number | string | null | undefined>): string =>
  versions.every((version) => version === null || version === undefined)
    ? ""
    : versions.map((version) => version ?? "").join(".")

/** The store of the versions. */
export interface Store extends Pick<AccountVersions["Service"], "version"> {
  readonly change: (accounts: ReadonlyArray<string>) => Effect.Effect<void>
  /**
   * Starts a search for a signer's accounts. Returns `false`, without starting a search, if no account state was read
   * in the last minute.
   */
  readonly search: (signer: string) => Effect.Effect<boolean>
  /** Ends the search for a signer's accounts, and sets a new version for the given accounts. */
  readonly found: (signer: string, accounts: ReadonlyArray<string>) => Effect.Effect<void>
}

/** Milliseconds for which a signer's accounts are cached. The accounts for which a signer acts rarely change. */
const KNOWN_FOR = 3_600_000

const MAX_KNOWN = 10_000

/** Makes the service over a store. Each process determines by itself for which accounts signers act. */
export const make = ({ change, found, search, ...store }: Store): AccountVersions["Service"] => {
  const known = new Map<string, { readonly accounts: ReadonlyArray<string>; readonly since: number }>()
  const searched = new Set<string>()

  return AccountVersions.of({
    ...store,
    invalidate: change,
    change: Effect.fnUntraced(function*(signer, accounts) {
      const now = yield* Clock.currentTimeMillis
      const actsFor = known.get(signer)
      if (actsFor !== undefined && now - actsFor.since < KNOWN_FOR) {
        yield* change([...accounts, ...actsFor.accounts])
        return false
      }
      yield* change(accounts)
      if (!(yield* search(signer))) return false
      searched.add(signer)
      return true
    }),
    learn: Effect.fnUntraced(function*(signer, accounts) {
      known.delete(signer)
      known.set(signer, { accounts, since: yield* Clock.currentTimeMillis })
      for (const oldest of known.keys()) {
        if (known.size <= MAX_KNOWN) break
        known.delete(oldest)
      }
      if (searched.delete(signer)) yield* found(signer, accounts)
    })
  })
}

const memoryStore = (): Store => {
  const versions = new Map<string, number>()
  /** The end time of each search for a signer's accounts, by signer. */
  const searches = new Map<string, number>()
  let ofAll: number | undefined
  let readAt = Number.NEGATIVE_INFINITY

  const endSearches = (now: number) => {
    for (const [signer, until] of searches) {
      if (now < until) continue
      searches.delete(signer)
      ofAll = (ofAll ?? 0) + 1
    }
  }

  const versionAt = (accounts: ReadonlyArray<string>, now: number): Version => {
    readAt = now
    if (searches.size > 0) endSearches(now)
    return searches.size > 0
      ? undefined
      : printVersion([ofAll, ...accounts.map((each) => versions.get(versionSlot(each)))])
  }

  const change = (accounts: ReadonlyArray<string>) =>
    Effect.sync(() => {
      for (const slot of new Set(accounts.map(versionSlot))) versions.set(slot, (versions.get(slot) ?? 0) + 1)
    })

  return {
    version: (accounts, now) => Exit.succeed(versionAt(accounts, now)),
    change,
    search: (signer) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        if (now - readAt > cachedFor) return false
        endSearches(now)
        searches.set(signer, now + searchFor)
        return true
      }),
    found: (signer, accounts) => Effect.andThen(Effect.sync(() => searches.delete(signer)), change(accounts))
  }
}

/**
 * Provides versions in the memory of this process. Each call returns a new layer with separate versions.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (): Layer.Layer<AccountVersions> => Layer.sync(AccountVersions, () => make(memoryStore()))
