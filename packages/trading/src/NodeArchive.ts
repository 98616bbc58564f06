/**
 * Checks that the nodes configured as archives can return an account's transaction count at an early block.
 *
 * A node that is not an archive returns the latest count for any block, or an error. The check uses the sender of a
 * recent transaction: at the latest block, that sender's count is higher than at block 1.
 */
import { Address, Quantity } from "@trigate/domain/encoding/Hex"
import { served } from "@trigate/domain/evm/EvmMethods"
import { archiveSetting } from "@trigate/domain/evm/EvmMethodTable"
import { archiveServing } from "@trigate/domain/evm/EvmOperations"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import * as EvmTypedCalls from "@trigate/domain/evm/EvmTypedCalls"
import * as Operation from "@trigate/domain/operations/Operation"
import type { Pipeline } from "@trigate/upstream/Pipeline"
import { requestIds } from "@trigate/upstream/Pipeline"
import type { Target } from "@trigate/upstream/Upstream"
import { targetName } from "@trigate/upstream/Upstream"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Block = Schema.Struct({
  number: Quantity,
  transactions: Schema.Array(Schema.Struct({ from: Address, gasPrice: Schema.optionalKey(Quantity) }))
})

const askBlock = EvmTypedCalls.makeMethod(Operation.read({
  ...served(archiveServing),
  name: "eth_getBlockByNumber",
  summary: "A block with its transactions",
  request: Schema.Tuple([Schema.Union([Schema.Literal("latest"), Quantity]), Schema.Literal(true)]),
  response: Block,
  failures: []
}))

const askCount = EvmTypedCalls.makeMethod(Operation.read({
  ...served(archiveServing),
  name: "eth_getTransactionCount",
  summary: "Number of transactions that an account has sent",
  request: Schema.Tuple([Address, Schema.Union([Schema.Literal("latest"), Quantity])]),
  response: Quantity,
  failures: []
}))

/** Maximum number of blocks to search for a transaction. */
const searched = 20

const oldBlock = 1n

/**
 * Checks whether a node is an archive. Returns `undefined` for an archive; otherwise returns why the node is not an
 * archive or could not be checked. The text follows the node's name in a log line.
 */
export const checkNode = (pipeline: Pipeline["Service"], target: Target) => {
  const nextId = requestIds()
  const ask = (call: Omit<EvmProtocol.CheckedRead, "surface">) =>
    pipeline.attempt(
      { operation: call.operation, targets: [target] },
      EvmProtocol.reads.write({ ...call, surface: "gateway" }, nextId())
    )
  const blockAt = askBlock("NodeArchive", target.label, ask)
  const countAt = askCount("NodeArchive", target.label, ask)

  const sender = Effect.gen(function*() {
    let block = yield* blockAt(["latest", true])
    for (let left = searched; block.number > oldBlock + 1n; left--) {
      // the trading chain's own transactions have no gas price and do not increase their senders' transaction counts
      const found = block.transactions.find(({ gasPrice }) => gasPrice !== 0n)
      if (found !== undefined) return found.from
      if (left === 1) return undefined
      block = yield* blockAt([block.number - 1n, true])
    }
    return undefined
  })

  return Effect.gen(function*() {
    const from = yield* sender
    if (from === undefined) {
      return "is possibly not an archive node: the check found no transaction in its latest blocks"
    }
    const count = yield* countAt([from, "latest"])
    return yield* Effect.match(countAt([from, oldBlock]), {
      onFailure: () => "is not an archive node: it refuses block 1",
      onSuccess: (old) => old < count ? undefined : "is not an archive node: it returns the latest state for block 1"
    })
  }).pipe(Effect.orElseSucceed(() => "is possibly not an archive node: it did not respond to the check"))
}

/** Checks each node. Logs a warning for each node that is not an archive or cannot be checked. */
export const warn = (pipeline: Pipeline["Service"], targets: ReadonlyArray<Target>): Effect.Effect<void> =>
  Effect.forEach(targets, (target) =>
    Effect.flatMap(
      checkNode(pipeline, target),
      (finding) =>
        finding === undefined
          ? Effect.void
          : Effect.logWarning(`${archiveSetting} is on, but ${targetName(target)} ${finding}`)
    ), { concurrency: "unbounded", discard: true })
