/** A modelled chain as a node that is asked in this process, and what a client has that follows it. */
import { assert } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import { serving } from "@trigate/domain/evm/Layer2Operations"
import * as NodeReads from "@trigate/evm/unstable/Heads"
import type { SendRead } from "@trigate/evm/unstable/Heads"
import * as LogSearch from "@trigate/evm/unstable/LogSearch"
import type * as EvmChain from "@trigate/testing/EvmChain"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

/** Asks the chain that `current` returns. */
export const nodeAt = (current: () => EvmChain.EvmChain): SendRead => ({ operation, params }) =>
  Effect.sync(() => {
    const value: unknown = params.valueOrUndefined
    const answer = current().call(operation.name, Array.isArray(value) ? value : [])
    return "error" in answer
      ? JsonRpc.error(answer.error.code, answer.error.message)
      : JsonRpc.result(Json.write(answer.result))
  })

/** Asks the chain that `current` returns, and splits what it does not serve. */
export const asking = (current: () => EvmChain.EvmChain): SendRead => {
  const node = nodeAt(current)
  const { search } = LogSearch.make({ serving, send: node, reads: NodeReads.make(serving, "layer2", node), blocks: 50 })
  return (call) => call.operation.name === "eth_getLogs" ? search(call) : node(call)
}

/** The logs that a client has which applies the notifications in their order. */
export const applied = (logs: ReadonlyArray<{ readonly removed: boolean; readonly transactionHash: string }>) => {
  const has = new Set<string>()
  for (const { removed, transactionHash } of logs) {
    if (!removed) {
      assert.isFalse(has.has(transactionHash), "a log came twice")
      has.add(transactionHash)
    } else assert.isTrue(has.delete(transactionHash), "a log was removed that had not come")
  }
  return [...has].toSorted()
}

/** The transactions of some logs. */
export const hashesOf = (logs: ReadonlyArray<EvmChain.ModelLog>) =>
  logs.map(({ transactionHash }) => transactionHash).toSorted()

/** Lets the clock of a test pass, a second at a time. */
export const passSeconds = (seconds: number) =>
  Effect.forEach(Array.from({ length: seconds }), () => TestClock.adjust("1 second"), { discard: true })
