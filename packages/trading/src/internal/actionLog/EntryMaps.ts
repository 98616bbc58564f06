/** The maps of the in-memory action log: an index of the log's entries, and a queue that drops the oldest entries. */
import * as Predicate from "effect/Predicate"

/**
 * Makes an index from fingerprints and client order IDs (cloids) to the keys of log entries. A fingerprint or cloid
 * that has only one key, which is the usual case, is stored without a set.
 */
export const makeIndex = () => {
  const names = new Map<string, string | Set<string>>()
  const find = (by: string): ReadonlyArray<string> => {
    const keys = names.get(by)
    return keys === undefined ? [] : Predicate.isString(keys) ? [keys] : [...keys]
  }
  const set = (by: string, keys: ReadonlyArray<string>): void => {
    const [first] = keys
    if (first === undefined) names.delete(by)
    else names.set(by, keys.length === 1 ? first : new Set(keys))
  }
  return {
    add: (by: string, key: string) => {
      const known = names.get(by)
      if (known === undefined) names.set(by, key)
      else if (Predicate.isString(known)) set(by, [known, ...(known === key ? [] : [key])])
      else known.add(key)
    },
    remove: (by: string, key: string) => {
      if (names.get(by) === key) names.delete(by)
      else set(by, find(by).filter((each) => each !== key))
    },
    find
  }
}

/** The list of keys is compacted only if it contains at least this many dropped keys. */
const droppedKeys = 1_000

/**
 * Makes a map that drops its oldest entries. A plain `Map` becomes slower with each dropped entry, because iterating
 * over it also visits the slots of deleted entries.
 */
export const makeQueue = <A>() => {
  const entries = new Map<string, A>()
  let keys: Array<string> = []
  let dropped = 0
  return {
    get: (key: string): A | undefined => entries.get(key),
    set: (key: string, entry: A) => {
      if (!entries.has(key)) keys.push(key)
      entries.set(key, entry)
    },
    /**
     * Drops entries, oldest first, until `isKept` returns `true` for an entry; `size` is the current number of entries.
     */
    drop: (isKept: (entry: A, size: number) => boolean, onDrop: (key: string, entry: A) => void) => {
      for (;;) {
        const key = keys[dropped]
        const entry = key === undefined ? undefined : entries.get(key)
        if (key === undefined || entry === undefined || isKept(entry, entries.size)) return
        onDrop(key, entry)
        entries.delete(key)
        dropped += 1
        if (dropped >= droppedKeys && dropped * 2 >= keys.length) {
          keys = keys.slice(dropped)
          dropped = 0
        }
      }
    }
  }
}
