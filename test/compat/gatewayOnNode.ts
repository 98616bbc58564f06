/** A gateway whose HyperEVM and layer 2 are one real node, and what that node was asked. */
import { keys } from "@trigate/sandbox/SandboxExamples"
import { at } from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { anvil } from "../node/anvil.ts"
import { forwarder } from "./forwarder.ts"
import { session } from "./session.ts"

/** The chain id of the node. */
export const chainId = 31_337

/** Holds 10 000 of the node's own token. */
export const rich = keys.trader

/** Holds nothing on the node. */
export const poor = {
  address: "0xae72a48c1a36bd18af168541c53037965d26e4a8",
  privateKey: `0x${"77".repeat(32)}`
} as const

/** Routes that take the standard methods. */
export const routes = ["evm", "l2"] as const

/** The contract that the first transaction of {@link rich} creates. */
export const firstContract = "0x5fbdb2315678afecb367f032d93f642f64180aa3"

const methodsOf = (body: string): ReadonlyArray<string> => {
  const parsed: unknown = JSON.parse(body)
  return (Array.isArray(parsed) ? parsed : [parsed]).map((call) => String(at(call, "method")))
}

export const gatewayOnNode = Effect.fnUntraced(function*(name: string, client: string) {
  const node = yield* anvil
  const behind = yield* forwarder(node.url, () => "/")
  const url = yield* session({ name, client, upstreams: { node: behind.url, layer2: behind.url } })
  /** The methods of each request that the node was sent, a batch's together. */
  const asked = () => behind.exchanges.map(({ body }) => methodsOf(body))
  return {
    url,
    asked,
    /** How often the node was sent a transaction. */
    transactionsSent: () => asked().flat().filter((method) => method.startsWith("eth_sendRaw")).length
  }
})
