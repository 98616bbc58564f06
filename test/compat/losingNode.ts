/** A real node that takes a transaction, and whose answer to it gets lost. */
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import type { Reaction } from "@trigate/testing/FaultyUpstream"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import { value } from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { anvil } from "../node/anvil.ts"

/** Hands requests on to a node; of the first transaction the node's answer gets lost. */
const losing = (url: string): Reaction => {
  let lost = 0
  return (socket, { body }) => {
    const isTransaction = body.includes("eth_sendRawTransaction")
    if (isTransaction) lost += 1
    const isLost = isTransaction && lost === 1
    void fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })
      .then((answer) => answer.text())
      .then((text) => {
        if (isLost) return socket.resetAndDestroy()
        return socket.write(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
        )
      })
  }
}

/** A gateway over a node that takes the first transaction, and whose answer to it gets lost; what the node was sent. */
export const gatewayLosingAnswer = Effect.gen(function*() {
  const node = yield* anvil
  const behind = yield* faultyUpstream(losing(node.url))
  behind.reactToProbe = behind.react
  const { url } = yield* hostedGateway({ TRIGATE_LAYER2_URL: behind.url })
  /** The params of the transactions that the node was sent. */
  const transactions = () =>
    behind.requests.flatMap(({ body }) => body.includes("eth_sendRawTransaction") ? [value(body, "params", 0)] : [])
  return { url: `${url}/l2`, transactions }
})
