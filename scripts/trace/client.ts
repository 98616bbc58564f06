/** The process in which `npm run trace` follows a call of the typed client: `node client.ts <address of a gateway>`. */
import * as Connection from "@trigate/client/Connection"
import * as Evm from "@trigate/client/Evm"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"

const baseUrl = process.argv[2] ?? ""

const gateway = ManagedRuntime.make(Connection.layer({ baseUrl }).pipe(Layer.provide(FetchHttpClient.layer)))
await gateway.context()

// the inspector calls it
Object.assign(globalThis, { traced: () => gateway.runPromise(Evm.gasPrice()).then(String) })
console.log("client is ready")

// nothing else keeps the process alive; it ends with the one that started it
process.stdin.resume()
