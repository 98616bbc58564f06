/** Received jettons against a model of a ledger: whatever the node does, the owner's transfers are those of the model, once each. */
import { assert, describe, it } from "@effect/vitest"
import { beginCell } from "@ton/core"
import type { JettonTransfer, StartPosition } from "@trigate/domain/tokens/TokenData"
import { sample } from "@trigate/testing/Sample"
import { randomBy } from "@trigate/testing/SeededRandom"
import * as Transactions from "@trigate/tokens/transactions/Transactions"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { PageFault, Row } from "./chainModel.ts"
import { append, internalTransfer, makeNode, notification, raw } from "./chainModel.ts"
import { passUntil } from "./passing.ts"

const owner = raw("a")
const master = raw("b")
const wallet = raw("c")
const fakeMaster = raw("d")
const fakeWallet = raw("e")
const payer = raw("f")

const faults: ReadonlyArray<PageFault> = ["500", "hole", "doubled", "lag", "empty", "foreign"]

/** A ledger: the transactions of the owner, of the genuine wallet, and of the wallet of another jetton. */
const makeLedger = (random: (below: number) => number) => {
  const histories = { owner: new Array<Row>(), wallet: new Array<Row>(), fakeWallet: new Array<Row>() }
  /** The transfers that the owner has received in the genuine jetton. */
  const credited: Array<{ readonly lt: string; readonly amount: string; readonly forwardAmount: string }> = []
  const receive = (
    amount: bigint,
    forward: bigint,
    more: { readonly aborted?: boolean; readonly bounced?: boolean } = {}
  ) => append(histories.wallet, wallet, { source: payer, body: internalTransfer(amount, payer, forward), ...more })

  const events: ReadonlyArray<(amount: bigint) => void> = [
    // with a notification, or without one
    (amount) => {
      const forward = BigInt(random(2))
      const { lt } = receive(amount, forward)
      credited.push({ lt: String(lt), amount: String(amount), forwardAmount: String(forward) })
      if (forward > 0n) append(histories.owner, owner, { source: wallet, body: notification(amount, payer) })
    },
    (amount) => void receive(amount, 1n, { aborted: true }),
    (amount) => void receive(amount, 1n, { bounced: true }),
    // another jetton, whose wallet notifies the owner as the genuine one does
    (amount) => {
      append(histories.fakeWallet, fakeWallet, { source: payer, body: internalTransfer(amount, payer, 1n) })
      append(histories.owner, owner, { source: fakeWallet, body: notification(amount, payer) })
    },
    // the owner sends, and top-ups
    () =>
      void append(histories.wallet, wallet, { source: owner, body: beginCell().storeUint(0x0f8a7ea5, 32).endCell() }),
    () => void append(histories.wallet, wallet, { source: payer, body: beginCell().endCell() })
  ]
  let amount = 0n
  return {
    histories,
    credited,
    grow: (count: number) => {
      for (let each = 0; each < count; each++) events[random(2) * random(events.length)]?.(amount += 1n)
    }
  }
}

describe("received jettons", () => {
  it.effect("are those of the ledger, once each and in order, through faults and restarts at any step", () =>
    Effect.gen(function*() {
      const seeds = Array.from({ length: 60 }, (_, index) => index + 1)
      for (const seed of sample("ledgers of jettons", seeds, 1)) {
        yield* Effect.gen(function*() {
          const random = randomBy(seed)
          const ledger = makeLedger(random)
          ledger.grow(random(200))
          const clock = yield* Clock.Clock
          // a minute of 429 now and then, single faults otherwise
          let limitedUntil = 0
          const node = makeNode({
            histories: new Map([[owner, ledger.histories.owner], [wallet, ledger.histories.wallet], [
              fakeWallet,
              ledger.histories.fakeWallet
            ]]),
            wallets: new Map([[master, wallet], [fakeMaster, fakeWallet]]),
            mostRows: 20 + random(40),
            faultOf: () => {
              const now = clock.currentTimeMillisUnsafe()
              if (now >= limitedUntil && random(30) === 0) limitedUntil = now + 60_000
              return now < limitedUntil ? "429" : random(3) === 0 ? faults[random(faults.length)] ?? "none" : "none"
            }
          })
          const seen: Array<JettonTransfer> = []
          let after: StartPosition = "genesis"
          yield* Effect.forkScoped(Effect.forever(
            Effect.gen(function*() {
              // a restart: the service and its cache are new
              const { jettonTransfers } = yield* Transactions.make(node, {
                requestsPerSecond: 5,
                pollInterval: "2 seconds"
              })
              const read = Stream.runForEach(
                jettonTransfers({ owner, master, after }),
                (transfer) =>
                  Effect.sync(() => {
                    seen.push(transfer)
                    after = { lt: transfer.lt, hash: transfer.hash }
                  })
              )
              // a walk gives up after eight pages that do not connect; its caller resumes
              yield* Effect.timeoutOption(
                Effect.catchTag(read, "HistoryUnavailable", () => Effect.void),
                500 + random(90_000)
              )
            }).pipe(Effect.scoped)
          ))
          let rounds = 0
          yield* passUntil(
            () => rounds > 100 && seen.length >= ledger.credited.length,
            () => {
              rounds += 1
              if (rounds <= 100 && random(4) === 0) ledger.grow(random(20))
            }
          )
          assert.deepStrictEqual(
            seen.map(({ amount, forwardAmount, lt }) => ({ lt, amount, forwardAmount })),
            ledger.credited,
            `seed ${seed}`
          )
          assert.isAbove(seen.length, 0)
        }).pipe(Effect.scoped)
      }
    }))

  it.effect("wait for a node that limits requests when the stream begins", () =>
    Effect.gen(function*() {
      const ledger = makeLedger(() => 0)
      ledger.grow(2)
      const clock = yield* Clock.Clock
      const node = makeNode({
        histories: new Map([[wallet, ledger.histories.wallet]]),
        wallets: new Map([[master, wallet]]),
        faultOf: () => clock.currentTimeMillisUnsafe() < 60_000 ? "429" : "none"
      })
      const { jettonTransfers } = yield* Transactions.make(node, { requestsPerSecond: 5, pollInterval: "2 seconds" })
      const seen: Array<string> = []
      yield* Effect.forkScoped(
        Stream.runForEach(jettonTransfers({ owner, master, after: "genesis" }), ({ amount }) =>
          Effect.sync(() => seen.push(amount)))
      )
      yield* passUntil(() =>
        seen.length === 2
      )
      assert.deepStrictEqual(seen, ["1", "2"])
    }).pipe(Effect.scoped))
})
