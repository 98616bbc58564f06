/** A transaction and a node that goes away in the middle of it: it is sent once, and the gateway does not guess. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import type { Environment } from "@trigate/testing/Gateway"
import { gateway } from "@trigate/testing/Gateway"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import { keccak256, parseGwei } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { foundry } from "viem/chains"
import { deadline, deadlinesOnTestClock, endsAfter } from "../../packages/server/test/faults/time.ts"
import type { Forwarder } from "../compat/forwarder.ts"
import { forwarder } from "../compat/forwarder.ts"
import { anvil, canRun } from "./anvil.ts"
import { answerOf, resultOf } from "./writer.ts"

// the ten that the node funds: the first of the same mnemonic
const { fifthCosigner: _, fourthCosigner: __, ...funded } = keys
const accounts = Object.values(funded).map(({ privateKey }) => privateKeyToAccount(privateKey))

/** A signed transfer of one wei. */
const signed = (nonce: number, [account] = accounts) =>
  Effect.promise(() =>
    account === undefined
      ? Promise.reject(new Error("There is no such account"))
      : account.signTransaction({
        type: "eip1559",
        chainId: foundry.id,
        nonce,
        to: account.address,
        value: 1n,
        gas: 21_000n,
        maxFeePerGas: parseGwei("10"),
        maxPriorityFeePerGas: 1n
      })
  )

/** The transactions that have gone to a node, answered or not. */
const sentTo = ({ exchanges }: Forwarder) =>
  exchanges.filter(({ body }) => JsonParts.value(body, "method") === "eth_sendRawTransaction")
    .map(({ body }) => String(JsonParts.value(body, "params", 0)))

/** Two nodes in order, each behind a record of what it is sent. */
const started = Effect.fnUntraced(function*<E, R>(
  deadline: string,
  start: (environment: Environment) => Effect.Effect<{ readonly url: string }, E, R>
) {
  const first = yield* anvil
  const second = yield* anvil
  const beforeFirst = yield* forwarder(first.url)
  const beforeSecond = yield* forwarder(second.url)
  const { url } = yield* start({
    TRIGATE_LAYER2_URL: `${beforeFirst.url},${beforeSecond.url}`,
    TRIGATE_ONCE_DEADLINE: deadline
  })
  return {
    first,
    second,
    beforeFirst,
    toFirst: () => sentTo(beforeFirst),
    toSecond: () => sentTo(beforeSecond),
    balance: (address: string) => resultOf(`${url}/l2`, "eth_getBalance", `["${address}","latest"]`),
    send: (raw: string) => answerOf(`${url}/l2`, "eth_sendRawTransaction", `["${raw}"]`)
  }
})

const tagOf = (answer: string): unknown => JsonParts.value(answer, "error", "data", "_tag")

describe.runIf(canRun)("a transaction", () => {
  it.live("is sent once, also when its node is killed in the middle of a hundred of them", () =>
    Effect.gen(function*() {
      const { balance, first, send, toFirst, toSecond } = yield* started("10 minutes", hostedGateway)
      const raws = yield* Effect.forEach(
        Array.range(0, 11),
        (nonce) => Effect.forEach(accounts, (account) => signed(nonce, [account]))
      )
      let answered = 0
      const outcomes = yield* Effect.forEach(
        raws.flat(),
        (raw) =>
          Effect.gen(function*() {
            const answer = yield* send(raw)
            answered++
            if (answered === 40) {
              yield* first.kill
              // it is reads that teach which node is well; transactions then go to that one first
              yield* Effect.forEach(accounts, ({ address }) => balance(address), { concurrency: "unbounded" })
            }
            return { raw, answer }
          }),
        { concurrency: 20 }
      )
      const told = outcomes.filter(({ answer }) => tagOf(answer) !== "OutcomeUnknown")
      assert.isBelow(told.length, outcomes.length)
      for (const { answer, raw } of told) assert.strictEqual(JsonParts.value(answer, "result"), keccak256(raw), answer)
      // none of them twice, neither to one node nor to both
      assert.deepStrictEqual([...toFirst(), ...toSecond()].toSorted(), raws.flat().toSorted())
      assert.isAbove(toSecond().length, 0)
    }))

  it.effect("that a node has taken without an answer is unknown, goes to no other, and may come again as it is", () =>
    Effect.gen(function*() {
      yield* deadlinesOnTestClock
      const { balance, beforeFirst, first, second, send, toSecond } = yield* started(`${deadline} millis`, gateway)
      const raw = yield* signed(0)
      const hash = keccak256(raw)
      // calls wait until each of several addresses was asked for its chain, which a paused node would never answer
      yield* balance(keys.trader.address)
      yield* first.pause
      const before = beforeFirst.asked
      const isSent = Effect.repeat(Effect.yieldNow, { until: () => beforeFirst.asked > before })
      const answer = yield* endsAfter(deadline, send(raw), isSent)
      assert.strictEqual(tagOf(answer), "OutcomeUnknown", answer)
      assert.deepStrictEqual(toSecond(), [])
      assert.strictEqual(yield* resultOf(second.url, "eth_getTransactionByHash", `["${hash}"]`), "null")
      yield* first.goOn
      // whether the node has read it since is its own business: taken now, or found to be taken already
      const again = yield* send(raw)
      assert.isTrue(
        JsonParts.value(again, "result") === hash ||
          /^(?:nonce too low|transaction already imported)/u.test(String(JsonParts.value(again, "error", "message"))),
        again
      )
      const count = `["${accounts[0]?.address}","pending"]`
      assert.strictEqual(yield* resultOf(first.url, "eth_getTransactionCount", count), `"0x1"`)
      assert.strictEqual(
        JsonParts.value(yield* resultOf(first.url, "eth_getTransactionByHash", `["${hash}"]`), "hash"),
        hash
      )
      assert.deepStrictEqual(toSecond(), [])
    }))
})
