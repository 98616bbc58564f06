/** Checks receipts of each layer 2 family (such as OP stack or Arbitrum), and transactions without a receipt. */
import type { Hash } from "@trigate/domain/encoding/Encoding"
import { transactions } from "@trigate/sandbox/SandboxExamples"
import * as Effect from "effect/Effect"
import type { ConformanceCheck } from "./ConformanceCheck.ts"
import { equals, holds, present, succeeds } from "./ConformanceCheck.ts"
import type { ConformanceTarget } from "./ConformanceTarget.ts"

/** Fields that the layer 2 families add to receipts. These fields have to be preserved. */
const extras: ReadonlyArray<readonly [family: string, hash: Hash, fields: ReadonlyArray<string>]> = [
  ["OP stack", transactions.opStack, ["l1Fee", "l1GasUsed", "l1GasPrice", "daFootprintGasScalar", "blobGasUsed"]],
  ["OP stack before Bedrock", transactions.opLegacy, ["l1Fee", "l1FeeScalar"]],
  ["OP deposit", transactions.opDeposit, ["depositNonce", "depositReceiptVersion"]],
  ["Arbitrum", transactions.arbitrum, ["gasUsedForL1", "l1BlockNumber", "timeboosted"]],
  ["zkSync", transactions.zksync, ["l1BatchNumber", "l1BatchTxIndex", "l2ToL1Logs", "root"]],
  ["Linea", transactions.linea, []]
]

/** Returns the checks of the target's `layer2` methods. */
export const checks = ({ layer2 }: ConformanceTarget): ReadonlyArray<ConformanceCheck> => {
  const getReceipt = (hash: Hash) =>
    Effect.flatMap(
      succeeds(layer2.getTransactionReceipt({ hash })),
      (receipt) => present(`a receipt of ${hash}`, receipt)
    )
  return [
    ...extras.map(([family, hash, fields]) => ({
      name: `a receipt of ${family} keeps the family's fields`,
      effect: Effect.gen(function*() {
        const receipt = yield* getReceipt(hash)
        yield* equals("the receipt's hash", receipt.transactionHash, hash)
        yield* equals("the receipt's status", receipt.status, "success")
        for (const field of fields) yield* holds(`the field ${field}`, receipt[field] !== undefined, receipt)
      })
    })),
    {
      name: "a zkSync log keeps the fields that zkSync clients need",
      effect: Effect.gen(function*() {
        const { logs } = yield* getReceipt(transactions.zksync)
        yield* equals("the index of the first log in its transaction", logs[0]?.["transactionLogIndex"], "0x0")
      })
    },
    {
      name: "a failed transaction has a receipt with the status `failure`",
      effect: Effect.flatMap(
        getReceipt(transactions.failed),
        ({ status }) => equals("the receipt's status", status, "failure")
      )
    },
    {
      name: "a contract creation has a contract address and no recipient",
      effect: Effect.gen(function*() {
        const { contractAddress, to } = yield* getReceipt(transactions.creation)
        yield* equals("to", to, null)
        yield* holds("a contract address", typeof contractAddress === "string", contractAddress)
      })
    },
    {
      name: "an unknown transaction has no receipt",
      effect: Effect.flatMap(
        succeeds(layer2.getTransactionReceipt({ hash: transactions.unknown })),
        (receipt) => equals("the receipt", receipt, null)
      )
    }
  ]
}
