/** The process in which `npm run trace` follows a call of the typed client: `node client.ts <address of a gateway>`. */
import * as GatewayClient from "@trigate/client/GatewayClient"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"

const baseUrl = process.argv[2] ?? ""

const layer = GatewayClient.layer({ baseUrl }).pipe(Layer.provide(FetchHttpClient.layer))
const client = await GatewayClient.GatewayClient.pipe(Effect.provide(layer), Effect.runPromise)

// the inspector calls it
Object.assign(globalThis, { traced: () => Effect.runPromise(client.evm.gasPrice()).then(String) })
console.log("client is ready")

// nothing else keeps the process alive; it ends with the one that started it
process.stdin.resume()
