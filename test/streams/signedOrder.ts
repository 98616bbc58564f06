/** An order that the sandbox's trader signed. */
import { signL1Action } from "@nktkas/hyperliquid/signing"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Effect from "effect/Effect"
import { privateKeyToAccount } from "viem/accounts"

/** Returns the body of an order that rests at the venue. */
export const signedOrder = Effect.fnUntraced(function*(nonce: number, size: string, cloid?: `0x${string}`) {
  const order = { a: 1, b: true, p: "1100", s: size, r: false, t: { limit: { tif: "Gtc" as const } } }
  const action = {
    type: "order",
    orders: [cloid === undefined ? order : { ...order, c: cloid }],
    grouping: "na"
  }
  const wallet = privateKeyToAccount(keys.trader.privateKey)
  const signature = yield* Effect.promise(() => signL1Action({ wallet, action, nonce }))
  return { action, nonce, signature }
})
