/**
 * Versions of the state of accounts: a response that was read before an action changed an account is not served after it.
 *
 * The version is a part of the key under which a response is cached and under which equal reads are coalesced. After a change reads
 * have another key, so they find neither a response cached before nor a read that was in flight then.
 *
 * An action also changes the account for which its signer acts. While that account is unknown, a search for it is open: for up to 2
 * seconds no state of any account is shared. If the search fails, all accounts get a new version.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"

/** The version of some accounts, empty while none has changed; undefined while their state is not shared. */
export type Version = string | undefined

/**
 * Versions of accounts, which are named by their addresses in lower case.
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
  /** The version of accounts at a time in milliseconds; an `Exit` unless a store has to be asked that replicas share. */
  readonly version: (accounts: ReadonlyArray<string>, now: number) => Effect.Effect<Version>
  /**
   * Assigns a new version to accounts, and to those for which a signer acts.
   *
   * Returns `true` if the accounts of the signer are unknown: a search is then open until `learn` names them. No search
   * is opened if no account state was read in the last minute, because none is cached then.
   */
  readonly change: (signer: string, accounts: ReadonlyArray<string>) => Effect.Effect<boolean>
  /** Ends the version of accounts whose state has changed without an action of this gateway. */
  readonly invalidate: (accounts: ReadonlyArray<string>) => Effect.Effect<void>
  /** Notes for which accounts a signer acts besides its own, and ends the search for them. */
  readonly learn: (signer: string, accounts: ReadonlyArray<string>) => Effect.Effect<void>
}>()("@trigate/upstream/cache/AccountVersions") {}

/** How long a search is open, in milliseconds. */
export const searchFor = 2000

/** Milliseconds for which a response about an account may be cached at most. */
export const cachedFor = 60_000

/** Accounts share 4096 versions, which bounds memory. A collision only costs a read. */
export const versionSlot = (account: string): string => account.slice(-3)

/** The text of versions by slot, with that of all accounts. */
export const printVersion = (versions: ReadonlyArray<number | string | null | undefined>): string =>
  versions.every((version) => version === null || version === undefined)
    ? ""
    : versions.map((version) => version ?? "").join(".")

/** Where versions are stored. */
export interface Store extends Pick<AccountVersions["Service"], "version"> {
  readonly change: (accounts: ReadonlyArray<string>) => Effect.Effect<void>
  /** Opens a search; returns `false`, and opens none, if no state of accounts was read in the last minute. */
  readonly search: (signer: string) => Effect.Effect<boolean>
  /** Ends a search, and gives accounts a new version. */
  readonly found: (signer: string, accounts: ReadonlyArray<string>) => Effect.Effect<void>
}

/** A signer may act for another account later, though that is rare. */
const KNOWN_FOR = 3_600_000

const MOST_KNOWN = 10_000

/** The versions of a store. Which signers act for which accounts, each process learns for itself. */
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
        if (known.size <= MOST_KNOWN) break
        known.delete(oldest)
      }
      if (searched.delete(signer)) yield* found(signer, accounts)
    })
  })
}

const memoryStore = (): Store => {
  const versions = new Map<string, number>()
  /** When each search ends. */
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
 * The versions of one process; a function, so that two networks in one program share nothing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (): Layer.Layer<AccountVersions> => Layer.sync(AccountVersions, () => make(memoryStore()))
