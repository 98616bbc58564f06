/** A bot with promises: places an order, streams its fills, and handles a lost reply. */
import { createClient, isError } from "@trigate/sdk"

const baseUrl = process.argv[2] ?? "http://localhost:8080"
const privateKey = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
const trigate = createClient({ baseUrl, privateKey })
const user = await trigate.orders.account()

try {
  const order = await trigate.orders.place({ coin: "ETH", side: "buy", sizeInBase: "0.05" })
  // "venueState" or "resend": the reply was lost, and the outcome is known nevertheless
  console.log(order._tag, order.settledBy)
} catch (error) {
  if (!isError(error, "StillUnknown")) throw error
  console.log(`unknown: ask later for ${error.signer} ${error.nonce}`)
}
for await (const { fills } of trigate.streams.userFills({ user })) {
  console.log(fills.map(({ coin, sz }) => `${sz} ${coin}`).at(-1))
  break
}
await trigate.close()
