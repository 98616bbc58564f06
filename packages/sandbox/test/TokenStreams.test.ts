/** Streams of transactions over the contracts that the sandbox runs. */
import { assert, describe, it } from "@effect/vitest"
import { Address, beginCell, Cell, comment, external, internal, storeMessage, toNano } from "@ton/core"
import { keyPairFromSeed } from "@ton/crypto"
import { WalletContractV4 } from "@ton/ton"
import * as Json from "@trigate/domain/encoding/Encoding"
import { tokenSendOperations } from "@trigate/domain/tokens/TokenOperations"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { tokenKey, tokens } from "@trigate/sandbox/SandboxExamples"
import { TokenChain } from "@trigate/tokens/TokenChain"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"

const keys = keyPairFromSeed(Buffer.from(tokenKey.seed, "hex"))
const wallet = WalletContractV4.create({ workchain: 0, publicKey: keys.publicKey })
const recipient = Address.parseRaw(`0:${"11".repeat(32)}`)

/** A message of the example wallet that transfers jettons to the recipient, as a bag of cells in base64. */
const transferMessage = (seqno: number, amount: bigint, forward: bigint): string => {
  const body = beginCell().storeUint(0x0f8a7ea5, 32).storeUint(7, 64).storeCoins(amount).storeAddress(recipient)
    .storeAddress(wallet.address).storeMaybeRef(null).storeCoins(forward).storeMaybeRef(comment("rent")).endCell()
  const message = external({
    to: wallet.address,
    // the first message deploys the wallet
    ...(seqno === 0 ? { init: wallet.init } : {}),
    body: wallet.createTransfer({
      seqno,
      secretKey: keys.secretKey,
      messages: [internal({ to: Address.parse(tokenKey.jettonWallet), value: toNano("0.2"), body })]
    })
  })
  return beginCell().store(storeMessage(message)).endCell().toBoc().toString("base64")
}

describe("streams of the token chain's sandbox", () => {
  it.live("report a jetton transfer to its recipient, with and without a notification", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain
      const send = (seqno: number, amount: bigint, forward: bigint) =>
        Effect.map(
          chain.relay({
            operation: tokenSendOperations.sendBoc,
            params: Json.write({ boc: transferMessage(seqno, amount, forward) }),
            surface: "gateway"
          }),
          (answer) => assert.strictEqual(answer._tag, "Result")
        )
      const received = yield* chain.jettonTransfers({
        owner: recipient.toRawString(),
        master: tokens.onchain,
        after: "genesis"
      }).pipe(Stream.take(2), Stream.runCollect, Effect.forkScoped)
      const notified = yield* chain.transactions({ address: recipient.toRawString(), after: "genesis" }).pipe(
        Stream.take(1),
        Stream.runCollect,
        Effect.forkScoped
      )
      yield* send(0, 250n, 1n)
      yield* send(1, 750n, 0n)
      const transfers = yield* Fiber.join(received)
      assert.deepStrictEqual(
        transfers.map(({ amount, comment, forwardAmount, queryId, sender }) => ({
          amount,
          comment,
          forwardAmount,
          queryId,
          sender
        })),
        [
          { amount: "250", comment: "rent", forwardAmount: "1", queryId: "7", sender: wallet.address.toRawString() },
          { amount: "750", comment: "rent", forwardAmount: "0", queryId: "7", sender: wallet.address.toRawString() }
        ]
      )
      const [notification] = yield* Fiber.join(notified)
      assert.strictEqual(notification?.inMessage?.opcode, "0x7362d09c")
      assert.strictEqual(notification?.inMessage?.source, transfers[0]?.wallet)
    }).pipe(Effect.scoped, Effect.provide(Sandbox.layer())))
})

describe("messages that expand", () => {
  /** A tree of `levels` levels whose subtrees are all the same: 2^levels entries of a dictionary. */
  const shared = (levels: number, leaf: Cell): Cell =>
    levels === 0 ? leaf : shared(levels - 1, beginCell().storeUint(0, 2).storeRef(leaf).storeRef(leaf).endCell())

  const library = beginCell().storeUint(0b110, 3).storeUint(240, 8).storeBit(1).storeRef(Cell.EMPTY).endCell()

  /** An external message, as a bag of cells in base64. */
  const withParts = ({ body = Cell.EMPTY, libraries = null }: {
    readonly body?: Cell
    readonly libraries?: Cell | null
  }): string =>
    beginCell().storeUint(0b1000, 4).storeAddress(recipient).storeCoins(0)
      .storeBit(1).storeBit(0).storeUint(0, 4).storeMaybeRef(libraries)
      .storeBit(1).storeRef(body).endCell().toBoc().toString("base64")

  const chain = (length: number): Cell => {
    let cell = Cell.EMPTY
    for (let index = 0; index < length; index++) cell = beginCell().storeUint(index, 32).storeRef(cell).endCell()
    return cell
  }

  const refusals: ReadonlyArray<readonly [boc: string, reason: string]> = [
    [withParts({ libraries: shared(16, library) }), "external message has too many cells"],
    [
      withParts({ libraries: shared(200, beginCell().storeUint(0, 2).endCell()) }),
      "external message has too many cells"
    ],
    [withParts({ body: chain(600) }), "external message is too deep"],
    ["A".repeat(87_384), "external message is too large"]
  ]
  it.live("are refused before they are decoded", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain
      for (const [boc, reason] of refusals) {
        const answer = yield* chain.relay({
          operation: tokenSendOperations.sendBoc,
          params: Json.write({ boc }),
          surface: "gateway"
        })
        assert.include(answer._tag === "Error" ? answer.message : answer._tag, reason)
      }
    }).pipe(Effect.provide(Sandbox.layer())))
})
