import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { Mistake } from "@trigate/domain/unstable/Inspection"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Inspector from "@trigate/trading/Inspector"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import { sign } from "viem/accounts"

const nonce = 1_795_230_000_123

/** Keys of a public test mnemonic. */
const trader = {
  address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
  privateKey: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
} as const
const cosigner = {
  address: "0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc",
  privateKey: "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba"
} as const
type Key = typeof trader | typeof cosigner

const account = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"

type Digest = `0x${string}`

const signature = (digest: Digest, { privateKey }: Key = trader) =>
  Effect.map(Effect.promise(() => sign({ hash: digest, privateKey })), ({ r, s, v }) => ({ r, s, v: Number(v) }))

const digestOf = (action: unknown, context: ActionHash.HashContext = { nonce }): Digest =>
  ActionHash.digest(Result.getOrThrow(CanonicalAction.requestSignable(mainnet, { action, ...context })).outer)

const inspect = (body: unknown, expected: Digest = trader.address) =>
  Inspector.make(mainnet).inspect(Utf8.encode(JSON.stringify(body)), expected)

/** What `/exchange` says of the body at the time of its nonce. */
const admitted = (body: unknown) =>
  Effect.andThen(
    TestClock.setTime(nonce),
    Effect.result(Admission.make(mainnet).admit(Utf8.encode(JSON.stringify(body)), trader.address))
  )

const namesOf = (mistakes: ReadonlyArray<Mistake>) => [...new Set(mistakes.map(({ mistake }) => mistake))]

const usdSend = {
  type: "usdSend",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  destination: account,
  amount: "1.5",
  time: nonce
}
const order = {
  type: "order",
  orders: [{ a: 1, b: true, p: "1100.5", s: "0.2", r: false, t: { limit: { tif: "Gtc" } } }],
  grouping: "na"
}

describe("a repair", () => {
  it.effect("reads a chain id in decimal text or as a number for what it is", () =>
    Effect.gen(function*() {
      for (const signatureChainId of ["421614", 421_614]) {
        const body = { action: { ...usdSend, signatureChainId }, nonce, signature: yield* signature(digestOf(usdSend)) }
        const { corrected, diagnosis, warnings } = yield* inspect(body)
        assert.deepStrictEqual(diagnosis.mistakes.map(({ expected, mistake }) => [mistake, expected]), [
          ["chainIdText", `"0x66eee"`]
        ])
        assert.strictEqual(corrected?.signature, "kept")
        assert.include(corrected?.body, `"signatureChainId":"0x66eee"`)
        assert.isFalse(warnings.some((warning) => warning.includes("0x1614")))
      }
    }))

  it.effect("of a missing word names the words", () =>
    Effect.gen(function*() {
      const { grouping: _, ...action } = order
      const { corrected, diagnosis } = yield* inspect({ action, nonce, signature: yield* signature(digestOf(action)) })
      assert.include(
        diagnosis.detail,
        `action.grouping is missing: send "na", "normalTpsl" or "positionTpsl", and sign it`
      )
      assert.include(diagnosis.detail, "This correction could not be verified.")
      assert.isFalse(corrected?.verified)
    }))

  for (
    const [sent, right, mistakes] of [
      [
        { type: "perpDeploy", setDeployerFees: ["x:A", { scale: "1.5", growthMode: false }] },
        { type: "perpDeploy", setDeployerFees: [["x:A", { scale: "1.5", growthMode: false }]] },
        ["wrongShape action.setDeployerFees"]
      ],
      [
        { type: "scheduleCancel", data: { time: nonce } },
        { type: "scheduleCancel", time: nonce },
        ["misplacedMember action.data.time"]
      ]
    ] as const
  ) {
    it.effect(`moves members to where the venue reads them, and calls none unknown: ${sent.type}`, () =>
      Effect.gen(function*() {
        const body = { action: sent, nonce, signature: yield* signature(digestOf(sent)) }
        const { corrected, diagnosis, warnings } = yield* inspect(body)
        assert.deepStrictEqual(diagnosis.mistakes.map(({ mistake, path }) => `${mistake} ${path.join(".")}`), [
          ...mistakes
        ])
        assert.notInclude([diagnosis.detail, ...warnings].join(), "not known")
        assert.isTrue(corrected?.verified)
        assert.deepInclude(JSON.parse(corrected?.body ?? ""), { action: right })
      }))
  }

  it.effect("omits a flag that is false, as the venue hashes the action", () =>
    Effect.gen(function*() {
      const cancel = { type: "cancel", cancels: [{ a: 1, o: 77 }] }
      const sent = { ...cancel, f: false }
      const right = { action: sent, nonce, signature: yield* signature(digestOf(cancel)) }
      assert.strictEqual((yield* inspect(right)).diagnosis.verdict, "fits")
      assert.isTrue(Result.isSuccess(yield* admitted(right)))
      const id = Result.getOrThrow(ActionHash.hash(sent, { nonce }))
      const hashed = yield* signature(ActionHash.digest(ActionHash.agentSignable(mainnet, id)))
      const { corrected, diagnosis } = yield* inspect({ action: sent, nonce, signature: hashed })
      assert.deepStrictEqual(diagnosis.mistakes, [{ mistake: "falseHashed", path: ["action", "f"], found: "false" }])
      assert.deepStrictEqual([corrected?.signature, corrected?.verified], ["again", true])
      assert.isTrue(Result.isFailure(yield* admitted({ action: sent, nonce, signature: hashed })))
    }))

  it.effect("sorts a list by its keys, whichever order was signed", () =>
    Effect.gen(function*() {
      const multipliers = (...names: ReadonlyArray<string>) => ({
        type: "perpDeploy",
        setFundingMultipliers: names.map((name) => [name, "1.5"])
      })
      const sorted = multipliers("x:A", "x:B")
      const unsorted = multipliers("x:B", "x:A")
      for (
        const [sent, signed, kept] of [[unsorted, sorted, true], [unsorted, unsorted, false], [sorted, unsorted, false]]
      ) {
        const { corrected, diagnosis } = yield* inspect({
          action: sent,
          nonce,
          signature: yield* signature(digestOf(signed))
        })
        assert.deepStrictEqual(diagnosis.mistakes, [
          {
            mistake: "unsortedList",
            path: ["action", "setFundingMultipliers"],
            found: `"x:A" after "x:B"`,
            expected: "the list sorted by key"
          }
        ])
        assert.deepStrictEqual([corrected?.signature, corrected?.verified], [kept ? "kept" : "again", true])
        assert.deepInclude(JSON.parse(corrected?.body ?? ""), { action: sorted })
      }
    }))

  it.effect("of a time beside the nonce changes the one that was not signed", () =>
    Effect.gen(function*() {
      const signed = yield* signature(digestOf(usdSend))
      const other = yield* inspect({ action: usdSend, nonce: nonce + 7, signature: signed })
      assert.deepStrictEqual(other.diagnosis.mistakes, [
        { mistake: "otherNonce", path: ["nonce"], found: String(nonce + 7), expected: String(nonce) }
      ])
      assert.deepStrictEqual([other.corrected?.signature, other.corrected?.verified], ["kept", true])
      const moved = yield* inspect({ action: { ...usdSend, time: nonce + 7 }, nonce, signature: signed })
      assert.deepStrictEqual(moved.diagnosis.mistakes, [
        { mistake: "otherNonce", path: ["action", "time"], found: String(nonce + 7), expected: String(nonce) }
      ])
      assert.strictEqual(moved.corrected?.signature, "kept")
    }))

  it.effect("of a time in seconds is its milliseconds, in scheduleCancel too", () =>
    Effect.gen(function*() {
      const time = Math.floor(nonce / 1000)
      for (const action of [{ ...usdSend, time }, { type: "scheduleCancel", time }]) {
        const { corrected, diagnosis } = yield* inspect({
          action,
          nonce,
          signature: yield* signature(digestOf(action))
        })
        assert.deepStrictEqual(namesOf(diagnosis.mistakes), ["timeUnit"])
        assert.deepStrictEqual(diagnosis.mistakes.map(({ path }) => path.join(".")), ["action.time"])
        assert.include(corrected?.body, `"nonce":${nonce}`.slice(0, 12))
        assert.isTrue(corrected?.verified)
      }
    }))

  it.effect("passes /exchange with the signature that it keeps", () =>
    Effect.gen(function*() {
      const signed = yield* signature(digestOf(order, { nonce, expiresAfter: nonce + 60_000 }))
      const body = { action: order, nonce, signature: signed }
      assert.isTrue(Result.isFailure(yield* admitted(body)))
      const { corrected, diagnosis } = yield* inspect(body)
      assert.deepStrictEqual(namesOf(diagnosis.mistakes), ["expiresAfterNotSent"])
      assert.deepStrictEqual([corrected?.signature, corrected?.verified], ["kept", true])
      assert.isTrue(Result.isSuccess(yield* admitted(JSON.parse(corrected?.body ?? ""))))
    }))

  it.effect("does not send the account's own address as the vault that was signed", () =>
    Effect.gen(function*() {
      const signed = yield* signature(digestOf(order, { nonce, vaultAddress: trader.address }))
      const { corrected, diagnosis } = yield* inspect({ action: order, nonce, signature: signed })
      assert.deepStrictEqual(namesOf(diagnosis.mistakes), ["vaultNotSent"])
      assert.include(diagnosis.detail, "sign without vaultAddress")
      assert.deepStrictEqual([corrected?.signature, corrected?.verified], ["again", true])
      assert.deepStrictEqual(JSON.parse(corrected?.body ?? ""), { nonce, action: order })
    }))

  it.effect("takes a body out of what another program has put around it, with the same signature", () =>
    Effect.gen(function*() {
      const body = { action: order, nonce, signature: yield* signature(digestOf(order)) }
      const wrappers: ReadonlyArray<readonly [unknown, string]> = [
        [{ data: body }, "\"data\""],
        [{ method: "exchange", params: body }, "\"params\""],
        [{ type: "action", payload: { data: JSON.stringify(body) } }, "\"payload\", \"data\", JSON text"],
        [JSON.stringify(body), "JSON text"],
        [{ ...body, action: JSON.stringify(order) }, "JSON text at \"action\""]
      ]
      for (const [wrapper, found] of wrappers) {
        assert.isTrue(Result.isFailure(yield* admitted(wrapper)))
        const { corrected, diagnosis } = yield* inspect(wrapper)
        assert.strictEqual(diagnosis.verdict, "explained")
        assert.deepStrictEqual(diagnosis.mistakes, [
          { mistake: "wrappedBody", path: [], found, expected: "the object itself" }
        ])
        assert.deepStrictEqual([corrected?.signature, corrected?.verified], ["kept", true])
        assert.deepStrictEqual(JSON.parse(corrected?.body ?? ""), body)
      }
      for (const other of [{ data: { action: order, nonce } }, { a: body, b: body }, { data: [body] }, "x"]) {
        assert.isTrue(Result.isFailure(yield* Effect.result(inspect(other))))
      }
    }))

  it.effect("names the account's own address as vault", () =>
    Effect.gen(function*() {
      const context = { nonce, vaultAddress: trader.address }
      const { diagnosis } = yield* inspect({
        action: order,
        ...context,
        signature: yield* signature(digestOf(order, context))
      })
      assert.deepStrictEqual(namesOf(diagnosis.mistakes), ["ownVault"])
    }))
})

describe("a multi-sig", () => {
  const wrapperOf = (signatures: ReadonlyArray<unknown>, payload: object = {}) => ({
    type: "multiSig",
    signatureChainId: "0x66eee",
    signatures,
    payload: { multiSigUser: account, outerSigner: trader.address, action: order, ...payload }
  })
  const innerDigest = (at: number = nonce): Digest => {
    const wrapper = Result.getOrThrow(CanonicalAction.read(wrapperOf([{ r: "0x1", s: "0x1", v: 27 }])))
    return ActionHash.digest(Result.getOrThrow(CanonicalAction.cosignerSignable(mainnet, wrapper, { nonce: at })))
  }
  const trimmed = ({ r, s, v }: { readonly r: string; readonly s: string; readonly v: number }) => ({
    r: `0x${r.slice(2).replace(/^0+/u, "")}`,
    s: `0x${s.slice(2).replace(/^0+/u, "")}`,
    v
  })
  const made = Effect.fnUntraced(function*(inner: ReadonlyArray<unknown>, payload: object = {}, by: Key = trader) {
    const action = wrapperOf(inner, payload)
    return { action, nonce, signature: yield* signature(digestOf(action), by) }
  })

  it.effect("that another than its leader signed fits nobody, as /exchange says", () =>
    Effect.gen(function*() {
      const inner = trimmed(yield* signature(innerDigest(), cosigner))
      const body = yield* made([inner], {}, cosigner)
      const { diagnosis } = yield* inspect(body, cosigner.address)
      assert.strictEqual(diagnosis.verdict, "explained")
      assert.deepStrictEqual(namesOf(diagnosis.mistakes), ["otherLeader"])
      assert.isTrue(Result.isFailure(yield* admitted(body)))
    }))

  it.effect("whose co-signer signed another nonce has to be signed again, not changed", () =>
    Effect.gen(function*() {
      const inner = trimmed(yield* signature(innerDigest(nonce + 1), cosigner))
      const { corrected, diagnosis } = yield* inspect(yield* made([inner]), cosigner.address)
      assert.deepStrictEqual(diagnosis.mistakes, [
        { mistake: "otherNonce", path: [], found: String(nonce + 1), expected: String(nonce) }
      ])
      assert.strictEqual(diagnosis.innerIndex, 0)
      assert.include(diagnosis.detail, `sign again with the nonce of the body, ${nonce}`)
      assert.include(corrected?.body, `"nonce":${nonce}`)
    }))

  it.effect("is judged inside although its leader is expected: recovery ids, and a signer who comes twice", () =>
    Effect.gen(function*() {
      const inner = trimmed(yield* signature(innerDigest(), cosigner))
      const low = yield* inspect(yield* made([{ ...inner, v: inner.v - 27 }]))
      assert.deepStrictEqual(low.diagnosis.mistakes.map(({ mistake, path }) => [mistake, path.join(".")]), [
        ["recoveryBitForm", "action.signatures.0.v"]
      ])
      const twice = yield* inspect(yield* made([inner, inner]))
      assert.deepStrictEqual(twice.diagnosis.mistakes.map(({ mistake, path }) => [mistake, path.join(".")]), [
        ["repeatedCosigner", "action.signatures.1"]
      ])
      const leaders = trimmed(yield* signature(digestOf(order)))
      const bare = yield* inspect(yield* made([inner, leaders]))
      assert.deepStrictEqual([namesOf(bare.diagnosis.mistakes), bare.diagnosis.innerIndex], [["notWrapped"], 1])
    }))
})
