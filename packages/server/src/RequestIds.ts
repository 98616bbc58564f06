/** Request ids: the caller's own where it is plain, else one of ours. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"

/** Gives each request its id. */
export class RequestIds extends Context.Service<RequestIds, {
  readonly of: (given: string | undefined) => string
}>()("@trigate/server/RequestIds") {}

const plain = /^[A-Za-z0-9._-]{1,64}$/u

/** Ids of ours are a random prefix of the process and a count. */
export const layer: Layer.Layer<RequestIds> = Layer.effect(
  RequestIds,
  Effect.map(Random.nextIntBetween(0, 36 ** 6), (seed) => {
    const prefix = seed.toString(36).padStart(6, "0")
    let count = 0
    return RequestIds.of({
      of: (given) => given !== undefined && plain.test(given) ? given : `${prefix}-${(count++).toString(36)}`
    })
  })
)
