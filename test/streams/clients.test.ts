/** Stock clients receive the same through the gateway as straight from the venue: only their base URL is changed. */
import { assert, describe, it } from "@effect/vitest"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as Effect from "effect/Effect"
import { ccxtPro } from "./clients/ccxtPro.ts"
import { hyperliquid } from "./clients/hyperliquid.ts"
import { nktkas } from "./clients/nktkas.ts"
import type { Client, Payloads } from "./clients/play.ts"
import { missing, pythonFrames, pythonLibrary } from "./clients/python.ts"
import { fakeVenue } from "./fakeVenue.ts"

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
  for (const [name, client] of Object.entries(clients)) {
    it.live(`${name} are those of the venue`, () =>
      Effect.gen(function*() {
        // a venue of its own: the gateway of the test before may connect to its venue again while it ends
        const venue = yield* fakeVenue()
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
