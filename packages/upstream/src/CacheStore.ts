/** CachedResponse answers of this process, bounded by bytes; the least recently used goes first. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import type { CachedResponse } from "./CachedResponse.ts"
import { isUsable } from "./CachedResponse.ts"

/** How much is kept. */
export interface Options {
  /** Bytes of keys and answers; 64 MiB when not given. An answer of more than an eighth of it is not kept. */
  readonly maxBytes?: number
}

/** CachedResponse answers by key; plain functions, because a hit has to cost as little as a lookup. */
export class CacheStore extends Context.Service<CacheStore, {
  /** The answer that is kept under a key, while it is of any use at `now`. */
  readonly get: (key: string, now: number) => CachedResponse | undefined
  readonly put: (key: string, kept: CachedResponse) => void
  /** Bytes held now. */
  readonly bytes: () => number
}>()("@trigate/upstream/CacheStore") {}

/** What an entry takes besides its texts: two maps' worth of pointers, the objects around it. */
const OVERHEAD = 256

/** Bytes that an entry is counted with; a text counts as if it were two bytes a character. */
export const sizeOf = (key: string, { content: { body, head } }: CachedResponse): number =>
  OVERHEAD + 2 * (key.length + head.length) + (typeof body === "string" ? 2 * body.length : body.byteLength)

const gauge = Metric.gauge("trigate_read_cache_bytes", { description: "Bytes of kept answers in this process" })

interface Entry {
  readonly kept: CachedResponse
  readonly size: number
}

/** A cache of its own; a function, so that two gateways in one program share nothing. */
export const layer = (options: Options = {}): Layer.Layer<CacheStore> =>
  Layer.effect(
    CacheStore,
    Effect.map(Effect.context(), (context) => {
      const maxBytes = options.maxBytes ?? 64 * 1024 * 1024
      const entries = new Map<string, Entry>()
      let bytes = 0

      const drop = (key: string, { size }: Entry) => {
        entries.delete(key)
        bytes -= size
      }

      gauge.updateUnsafe(0, context)
      return CacheStore.of({
        bytes: () => bytes,
        get: (key, now) => {
          const found = entries.get(key)
          if (found === undefined) return undefined
          if (!isUsable(found.kept, now)) {
            drop(key, found)
            gauge.updateUnsafe(bytes, context)
            return undefined
          }
          entries.delete(key)
          entries.set(key, found)
          return found.kept
        },
        put: (key, kept) => {
          const before = entries.get(key)
          if (before !== undefined) drop(key, before)
          const size = sizeOf(key, kept)
          if (size <= maxBytes / 8) {
            entries.set(key, { kept, size })
            bytes += size
            for (const [oldest, entry] of entries) {
              if (bytes <= maxBytes) break
              drop(oldest, entry)
            }
          }
          gauge.updateUnsafe(bytes, context)
        }
      })
    })
  )
