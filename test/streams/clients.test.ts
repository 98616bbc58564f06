/** Stock clients receive the same through the gateway as straight from the venue: only their base URL is changed. */
import { assert, describe, layer } from "@effect/vitest"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ccxtPro } from "./clients/ccxtPro.ts"
import { hyperliquid } from "./clients/hyperliquid.ts"
import { nktkas } from "./clients/nktkas.ts"
import type { Client, Payloads } from "./clients/play.ts"
import { missing, pythonFrames, pythonLibrary } from "./clients/python.ts"
import { type FakeVenue, fakeVenue } from "./fakeVenue.ts"

class Venue extends Context.Service<Venue, FakeVenue>()("test/streams/clients.test/Venue") {}

/** A subscription's payloads in their order; nothing promises the order of two subscriptions. */
const byName = (payloads: Payloads) => Map.groupBy(payloads, ([name]) => name)

const clients: Readonly<Record<string, Client>> = {
  "@nktkas/hyperliquid": nktkas,
  "ccxt pro": ccxtPro,
  hyperliquid,
  "the frames of hyperliquid-python-sdk": pythonFrames,
  ...(missing === undefined ? { "hyperliquid-python-sdk": pythonLibrary } : {})
}

if (missing !== undefined) console.log(`Not run here: hyperliquid-python-sdk itself (${missing})`)

describe("the payloads of", () => {
  layer(Layer.effect(Venue, fakeVenue()), { excludeTestServices: true })((it) => {
    for (const [name, client] of Object.entries(clients)) {
      it.effect(`${name} are those of the venue`, () =>
        Effect.gen(function*() {
          const venue = yield* Venue
          // both times the same, and near the machine's clock, from which clients take their nonces
          const at = Date.now()
          const straight = yield* Effect.promise(() => client(venue.url, venue, at))
          const { url } = yield* hostedGateway({ TRIGATE_TRADING_API_URL: venue.url })
          const through = yield* Effect.promise(() => client(url, venue, at))
          assert.isAbove(straight.length, 5)
          assert.deepStrictEqual(byName(through), byName(straight))
        }))
    }
  })
})
