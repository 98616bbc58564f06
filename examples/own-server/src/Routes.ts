import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import { Info } from "@trigate/trading/Info"
import { Clock, Effect, Layer, Schema } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

/** A route of one's own that asks a service behind the gateway's routes. */
const price = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const info = yield* Info
  yield* router.add(
    "GET",
    "/price/:coin",
    Effect.gen(function*() {
      const { coin } = yield* HttpRouter.schemaPathParams(Schema.Struct({ coin: Schema.String }))
      const startTime = (yield* Clock.currentTimeMillis) - 3_600_000
      const { candles } = yield* info.candleSnapshot({ coin, interval: "1m", startTime })
      return yield* HttpServerResponse.json({ coin, price: candles.at(-1)?.c ?? null })
    }).pipe(
      Effect.catchTag("UnknownAsset", ({ coin }) => HttpServerResponse.json({ coin, price: null }, { status: 404 }))
    )
  )
}))

/** Both kinds of route over one sandbox; live layers of the five services take its place in production. */
export const layer = Layer.merge(Gateway.layer(), price).pipe(
  Layer.provide(Sandbox.layer()),
  Layer.provide(Gateway.layerDefaults({ sandbox: true }))
)
