/** Contracts of strangers that would keep the token chain's virtual machine busy: others are served meanwhile. */
import { assert, describe, it } from "@effect/vitest"
import { Address, beginCell, Cell, contractAddress, external, internal, storeMessage, toNano } from "@ton/core"
import { keyPairFromSeed } from "@ton/crypto"
import { WalletContractV4 } from "@ton/ton"
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { tokenRpcOperations, tokenSendOperations } from "@trigate/domain/tokens/TokenOperations"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { tokenKey } from "@trigate/sandbox/SandboxExamples"
import { TokenChain } from "@trigate/tokens/TokenChain"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { monitorEventLoopDelay } from "node:perf_hooks"

const keys = keyPairFromSeed(Buffer.from(tokenKey.seed, "hex"))
const wallet = WalletContractV4.create({ workchain: 0, publicKey: keys.publicKey })

const contract = (code: string) => {
  const init = { code: beginCell().storeBuffer(Buffer.from(code, "hex")).endCell(), data: Cell.EMPTY }
  return { init, address: contractAddress(0, init) }
}

/** `PUSHINT 0`, then `DUP PAIR` for each level: a tuple that contains the same tuple twice, and so on. */
const nested = (levels: number) => contract(`70${"206f02".repeat(levels)}`)

/** `PUSHCONT {} AGAIN`: runs until the gas is used up. */
const endless = (suffix: string) => contract(`90ea${suffix}`)

/** A message of the example wallet that deploys contracts. */
const deploy = (contracts: ReadonlyArray<ReturnType<typeof contract>>): string => {
  const message = external({
    to: wallet.address,
    init: wallet.init,
    body: wallet.createTransfer({
      seqno: 0,
      secretKey: keys.secretKey,
      messages: contracts.map(({ address, init }) =>
        internal({ to: address, value: toNano("0.2"), init, bounce: false })
      )
    })
  })
  return beginCell().store(storeMessage(message)).endCell().toBoc().toString("base64")
}

const as = (id: string) => Effect.provideService(CurrentCaller, { id, scope: {}, quota: {} })

const send = Effect.fnUntraced(function*(boc: string) {
  const chain = yield* TokenChain
  return yield* chain.relay({ operation: tokenSendOperations.sendBoc, params: Json.write({ boc }), surface: "gateway" })
})

const runGetMethod = Effect.fnUntraced(function*(address: Address, method: string) {
  const chain = yield* TokenChain
  return yield* chain.relay({
    operation: tokenRpcOperations.runGetMethod,
    params: Json.write({ address: address.toRawString(), method, stack: [] }),
    surface: "gateway"
  })
})

const jettonWallet = Address.parse(tokenKey.jettonWallet)

/** Runs an effect, and returns the longest delay of the event loop meanwhile, in milliseconds. */
const longestDelay = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>) {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  // the first call loads the virtual machine
  assert.strictEqual((yield* runGetMethod(jettonWallet, "get_wallet_data"))._tag, "Result")
  yield* Effect.sleep("50 millis")
  delays.enable()
  yield* effect
  delays.disable()
  return delays.max / 1e6
})

const test = <A, E>(effect: Effect.Effect<A, E, TokenChain | Scope.Scope>) =>
  effect.pipe(Effect.scoped, Effect.provide(Sandbox.layer()))

describe("contracts of strangers", () => {
  it.live("end after two seconds, and let others be served meanwhile", () =>
    test(Effect.gen(function*() {
      const chain = yield* TokenChain
      const { address, ...contract } = nested(24)
      assert.strictEqual((yield* send(deploy([{ address, ...contract }])))._tag, "Result")
      const delay = yield* longestDelay(Effect.gen(function*() {
        const attacks = yield* Effect.forEach(
          Array.from({ length: 2 }),
          () => Effect.forkScoped(as("key:a")(runGetMethod(address, "any")))
        )
        yield* Effect.sleep("20 millis")
        const read = yield* chain.relay({
          operation: tokenRpcOperations.getAddressInformation,
          params: Json.write({ address: tokenKey.jettonWallet }),
          surface: "gateway"
        })
        assert.strictEqual(read._tag, "Result")
        assert.deepStrictEqual(attacks.map((attack) => attack.pollUnsafe()), [undefined, undefined])
        const ran = yield* as("key:b")(runGetMethod(jettonWallet, "get_wallet_data"))
        assert.strictEqual(ran._tag, "Result")
        // the turn of the other caller comes before the second attack
        assert.isUndefined(attacks[1]?.pollUnsafe())
        for (const attack of attacks) {
          const answer = yield* Fiber.join(attack)
          assert.strictEqual(
            answer._tag === "Error" ? answer.message : answer._tag,
            "LITE_SERVER_UNKNOWN: cannot run get method: execution aborted (timeout = 2s)"
          )
        }
      }))
      assert.isBelow(delay, 400)
      assert.strictEqual((yield* runGetMethod(jettonWallet, "get_wallet_data"))._tag, "Result")
    })), 60_000)

  it.live("use up their gas beside the event loop", () =>
    test(Effect.gen(function*() {
      const contracts = [endless("00"), endless("01"), endless("02")]
      const delay = yield* longestDelay(
        Effect.map(send(deploy(contracts)), (answer) => assert.strictEqual(answer._tag, "Result"))
      )
      assert.isBelow(delay, 400)
      // the message was executed, even if it caused more than two seconds of work
      assert.strictEqual((yield* runGetMethod(wallet.address, "seqno"))._tag, "Result")
    })), 60_000)

  it.live("do not decode stacks of thousands of cells", () =>
    test(Effect.gen(function*() {
      const chain = yield* TokenChain
      const tree = (levels: number, index = 1): Cell =>
        levels === 0
          ? beginCell().storeUint(index, 32).endCell()
          : beginCell().storeRef(tree(levels - 1, index * 2)).storeRef(tree(levels - 1, index * 2 + 1)).endCell()
      const cell = ["tvm.Cell", tree(6).toBoc().toString("base64")]
      const ask = (length: number) =>
        chain.relay({
          operation: tokenRpcOperations.runGetMethod,
          params: Json.write({
            address: tokenKey.jettonWallet,
            method: "get_wallet_data",
            stack: Array.from({ length }, () => cell)
          }),
          surface: "gateway"
        })
      assert.strictEqual((yield* ask(2))._tag, "Result")
      assert.strictEqual((yield* ask(9))._tag, "Error")
    })))
})
