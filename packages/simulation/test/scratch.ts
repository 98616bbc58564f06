import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Simulation from "@trigate/simulation/Simulation"
import * as Gateway from "@trigate/simulation/unstable/Gateway"
import * as HttpServing from "@trigate/simulation/unstable/HttpServing"
import * as Network from "@trigate/simulation/unstable/Network"
import * as Venue from "@trigate/simulation/unstable/Venue"
import { Cause, Clock, Effect, Exit, Fiber, Layer, Redacted, Scope } from "effect"

const engine = await Effect.runPromise(Secp256k1.Secp256k1.pipe(Effect.provide(Secp256k1.layer)))
const signer = Signer.layerPrivateKey(
  Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
)
;(globalThis as any).__trackPromises?.(true)
const scenario = Effect.gen(function*() {
  const sim = yield* Simulation.Simulation
  const network = yield* Network.make()
  const t0 = performance.now()
  const venue = yield* Venue.make({ network, engine })
  const t1 = performance.now()
  console.log("venue")
  const node = sim.node("gateway-1")
  const scope = yield* Scope.make()
  yield* Fiber.join(
    node.start(
      Gateway.make({
        network,
        node,
        address: "http://gateway-1",
        stores: Gateway.memoryStores(),
        environment: { TRIGATE_TRADING_API_URL: "http://venue" }
      }).pipe(Scope.provide(scope))
    )
  )
  const t2 = performance.now()
  console.log("gateway")
  const bot = sim.node("bot-1")
  const http = network.http(bot)
  const send = (path: string, body: string) =>
    http.send({
      method: "POST",
      url: Redacted.make(`http://gateway-1${path}`),
      headers: { "content-type": "application/json" },
      body: new TextEncoder().encode(body),
      maxAnswerBytes: 1e6,
      timeout: 20_000
    })
  const r = yield* Fiber.join(bot.start(
    Effect.gen(function*() {
      const mids = yield* send("/info", `{"type":"allMids"}`)
      sim.log("bot-1", HttpServing.bodyText(mids).slice(0, 100))
      const nonce = yield* Clock.currentTimeMillis
      const signed = yield* ActionBuilder.placeOrders({
        orders: [{ asset: 0, side: "buy", priceInQuote: "60000", sizeInBase: "0.001" }]
      }, { nonce })
      const ordered = yield* send("/exchange", JSON.stringify(signed))
      sim.log("bot-1", ordered.status + " " + HttpServing.bodyText(ordered).slice(0, 200))
      return ordered.status
    }).pipe(Effect.provide(signer), Effect.provide(VenueProfile.layer("mainnet")))
  )).pipe(Effect.exit)
  yield* Effect.sleep("60 seconds")
  const t3 = performance.now()
  return { r: Exit.isSuccess(r) ? r.value : Cause.pretty(r.cause), times: [t1 - t0, t2 - t1, t3 - t2] }
})
for (const seed of process.env.N ? Array.from({ length: Number(process.env.N) }, (_, i) => i) : [1, 1, 2]) {
  const t = performance.now()
  const report = Simulation.run(scenario, { seed, maxSteps: 200000 })
  console.log(report.digest, report.steps, report.elapsed, performance.now() - t)
  console.log(Exit.isSuccess(report.exit) ? report.exit.value : Cause.pretty(report.exit.cause))
  console.log(report.timeline.join("\n"))
}
