/** How much memory a program took at most while an effect ran. */
import * as Effect from "effect/Effect"

const MiB = 1024 * 1024

/** What an effect gave, and by how many MiB the resident set grew beyond its start while it ran. */
export const growthOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    globalThis.gc?.()
    const start = process.memoryUsage.rss()
    let most = start
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss())
    }, 5)
    return effect.pipe(
      Effect.map((value) => ({
        value,
        mebibytes: (Math.max(most, process.memoryUsage.rss()) - start) / MiB
      })),
      Effect.ensuring(Effect.sync(() => clearInterval(timer)))
    )
  })
