/** A bot with Effect: places an order, streams its fills, and handles a lost reply. */
import { Connection, Streams } from "@trigate/client"
import { layer, Orders } from "@trigate/sdk/Orders"
import { NonceSource, Signer, VenueProfile } from "@trigate/signing"
import { Console, Effect, Layer, Redacted, Stream } from "effect"

const options = { baseUrl: process.argv[2] ?? "http://localhost:8080" }
const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")

const program = Effect.gen(function*() {
  const { account, place } = yield* Orders
  const order = yield* place({ coin: "ETH", side: "buy", sizeInBase: "0.05" })
  yield* Console.log(order._tag, order.settledBy)
  const { userFills } = yield* Streams.Streams
  const fills = Stream.take(userFills({ user: yield* account }), 1)
  yield* Stream.runForEach(fills, ({ fills }) => Console.log(fills.map(({ coin, sz }) => `${sz} ${coin}`).at(-1)))
}).pipe(Effect.catchTag("StillUnknown", ({ nonce, signer }) => Console.log(`unknown: ${signer} ${nonce}`)))

const signing = [Signer.layerPrivateKey(key), NonceSource.layerMemory(), VenueProfile.layer("mainnet")] as const
const gateway = layer.pipe(Layer.provide([Connection.layerFetch(options), ...signing]))
await Effect.runPromise(Effect.provide(program, Layer.merge(gateway, Streams.layerWebSocket(options))))
