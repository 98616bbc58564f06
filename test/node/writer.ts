/** Transactions of a test, sent straight to a node: each is in a block when its call returns. */
import { keys } from "@trigate/sandbox/SandboxExamples"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import type { Hex } from "viem"
import { createWalletClient, encodeFunctionData, http } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { foundry } from "viem/chains"
import { abi, bytecode } from "./counter.ts"

// the node has funded it
const account = privateKeyToAccount(keys.trader.privateKey)

const gas = 30_000_000n

/** Asks a JSON-RPC server and gives the text of its whole answer. */
export const answerOf = (url: string, method: string, params: string, id = "1") =>
  Effect.map(
    post(url, `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`),
    ({ text }) => text
  )

/** The same for the raw result. */
export const resultOf = (url: string, method: string, params: string) =>
  Effect.map(answerOf(url, method, params), (text) => JsonParts.raw(text, ["result"]))

const clientOf = (url: string) =>
  createWalletClient({ account, chain: foundry, transport: http(url, { retryCount: 0 }) })

/** Calls a contract; with gas given, a call that reverts is sent as well. */
const call = (url: string, to: Hex, data: Hex) =>
  Effect.promise(() => clientOf(url).sendTransactionSync({ to, data, gas, throwOnReceiptRevert: false }))

/** Deploys a counter on a node. */
export const deployCounter = Effect.fnUntraced(function*(url: string) {
  const { contractAddress, transactionHash: created } = yield* Effect.promise(() =>
    clientOf(url).sendTransactionSync({ data: bytecode, gas: 5_000_000n })
  )
  if (contractAddress === null || contractAddress === undefined) return yield* Effect.die("No contract was created")
  return {
    address: contractAddress,
    created,
    count: (times: bigint) =>
      call(url, contractAddress, encodeFunctionData({ abi, functionName: "count", args: [times] })),
    countTo: (next: bigint) =>
      call(url, contractAddress, encodeFunctionData({ abi, functionName: "countTo", args: [next] }))
  }
})
