import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { Inspection } from "@trigate/domain/unstable/Inspection"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as SigningMistake from "@trigate/signing/unstable/inspection/SigningMistake"
import { mainnet } from "@trigate/signing/VenueProfile"
import { sample, shuffle } from "@trigate/testing/Sample"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Inspector from "@trigate/trading/Inspector"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { breaks, soundOf } from "./breaks.ts"
import { broken } from "./confusion.ts"
import { rareSignings } from "./rareSignings.ts"
import * as samples from "./samples.ts"
import { shaped } from "./shapes.ts"
import { bodyOf, pairs, rightRecipe, single } from "./signingMistakes.ts"

const expected = keys.trader.address

const nonceOf = (body: unknown): number => Schema.decodeUnknownSync(Schema.Struct({ nonce: Schema.Number }))(body).nonce

/** What `/exchange` decides at a time inside of the nonce's window, and what the inspector says; each by bytes of its own. */
const both = Effect.fnUntraced(function*(body: unknown) {
  const engine = yield* Secp256k1.Secp256k1
  const bytes = () => Utf8.encode(JSON.stringify(body))
  yield* TestClock.setTime(nonceOf(body))
  const admitted = yield* Effect.result(Admission.make(mainnet, {}, engine).admit(bytes(), expected))
  const seen = yield* Effect.result(Inspector.make(mainnet, {}, engine).inspect(bytes(), expected))
  return { admitted: Result.isSuccess(admitted), seen: Result.getOrUndefined(seen) }
}, Effect.provide(Secp256k1.layer))

const Unsigned = Schema.Struct({
  action: Schema.StructWithRest(Schema.Struct({ type: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)]),
  nonce: Schema.Int,
  vaultAddress: Schema.optional(Schema.NullOr(Schema.String)),
  expiresAfter: Schema.optional(Schema.NullOr(Schema.Int))
})

const decode = Schema.decodeUnknownSync(Unsigned)

/** Returns a corrected body that the trader signed with code that the inspector does not use. */
const signedAnew = (body: unknown): Promise<unknown> => {
  const { action, expiresAfter, nonce, vaultAddress } = decode(body)
  const sound = soundOf({ action, nonce })
  return bodyOf({
    ...rightRecipe(sound),
    ...(vaultAddress == null ? {} : { vaultAddress }),
    ...(expiresAfter == null ? {} : { expiresAfter })
  }, sound)
}

/** A mistake whose correction keeps the signature, in every sample. */
const signatureStays = "another nonce sent than signed"

/** One broken body of each row of the sampled table, and what both say of it. Each costs dozens of recoveries. */
const judgeBrokenBodies = Effect.gen(function*() {
  const sound = yield* broken
  const rows = [
    ...breaks.filter(({ name }) => name === signatureStays),
    ...sample("decisions about broken bodies", [...breaks, ...single, ...shaped, ...pairs], 28, ({ name }) => name),
    ...sample("decisions about rare signings", rareSignings, 6, ({ mistake }) => mistake)
  ]
  const bodies: Array<{ readonly name: string; readonly body: unknown } & Effect.Success<ReturnType<typeof both>>> = []
  for (const { make, name } of rows) {
    for (const each of shuffle(name, sound)) {
      const made = yield* Effect.promise(() => Promise.resolve(make(soundOf(each.body))))
      if (made === undefined) continue
      bodies.push({ name: `${name}: ${each.name}`, body: made.body, ...yield* both(made.body) })
      break
    }
  }
  return bodies
})

/** The same for all tests of this file, judged on the clock of the first. */
const brokenBodies = Effect.runSync(Effect.cached(judgeBrokenBodies))

const soundBodies = Effect.gen(function*() {
  const alone = yield* broken
  const wrapped = yield* Effect.promise(samples.wrapped)
  return sample("decisions about sound bodies", [...alone, ...wrapped], 20, ({ name }) => name.split(" ")[0] ?? "")
})

const isOfBody = ({ mistakes }: Inspection["diagnosis"]): boolean =>
  mistakes.every(({ mistake }) => SigningMistake.kinds[mistake].by !== "search")

describe("the inspector and /exchange", () => {
  it.effect("agree about every body that fits", () =>
    Effect.gen(function*() {
      for (const { body, name } of yield* soundBodies) {
        const { admitted, seen } = yield* both(body)
        assert.deepStrictEqual([admitted, seen?.diagnosis.verdict], [true, "fits"], name)
      }
    }))

  it.effect(
    "agree about every body with a mistake: what is refused does not fit, and what is relayed is its signer's",
    () =>
      Effect.gen(function*() {
        for (const { admitted, name, seen } of yield* brokenBodies) {
          if (seen === undefined) {
            assert.isFalse(admitted, name)
            continue
          }
          const { diagnosis, outer } = seen
          if (!admitted) assert.notStrictEqual(diagnosis.verdict, "fits", `${name}: ${diagnosis.detail}`)
          else {
            assert.deepStrictEqual(
              [outer?.signer, isOfBody(diagnosis)],
              [expected, true],
              `${name}: ${diagnosis.detail}`
            )
          }
        }
      })
  )

  it.effect(
    "agree about every corrected body, signed again by other code where that is said",
    () =>
      Effect.gen(function*() {
        const counts = { kept: 0, again: 0, notVerified: 0 }
        for (const { name, seen } of yield* brokenBodies) {
          if (seen?.corrected === undefined) continue
          const { corrected, diagnosis } = seen
          const isSaid = diagnosis.detail.endsWith("This correction could not be verified.")
          assert.strictEqual(isSaid, !corrected.verified, `${name}: ${diagnosis.detail}`)
          if (!corrected.verified) {
            counts.notVerified++
            continue
          }
          counts[corrected.signature]++
          const fixed: unknown = JSON.parse(corrected.body)
          const whole = corrected.signature === "kept" ? fixed : yield* Effect.promise(() => signedAnew(fixed))
          const again = yield* both(whole)
          assert.deepStrictEqual(
            [again.admitted, again.seen?.diagnosis.verdict, again.seen?.outer?.signer],
            [true, "fits", expected],
            `${name}: ${again.seen?.diagnosis.detail} ${corrected.body}`
          )
        }
        console.log("corrected bodies", counts)
        assert.isAbove(counts.kept, 0)
        assert.isAbove(counts.again, 0)
      })
  )

  it.effect("an explanation names the digest that the expected signer signed", () =>
    Effect.gen(function*() {
      const engine = yield* Effect.provide(Secp256k1.Secp256k1, Secp256k1.layer)
      let explained = 0
      for (const { body, name, seen } of yield* brokenBodies) {
        if (seen?.diagnosis.verdict !== "explained" || seen.diagnosis.innerIndex !== undefined) continue
        const { digest, mistakes } = seen.diagnosis
        // another key signed it, or the signature itself had to be mended
        const isMended = mistakes.some(({ mistake }) =>
          ["signature", "signers"].includes(SigningMistake.kinds[mistake].by)
        )
        if (isMended) continue
        const { signature } = Schema.decodeUnknownSync(Signed)(body)
        const recovered = Secp256k1.recoverResult(digest ?? "", signature, engine)
        assert.deepStrictEqual(recovered, Result.succeed(expected), `${name}: ${seen.diagnosis.detail}`)
        explained++
      }
      assert.isAbove(explained, 0)
    }))
})

const Signed = Schema.Struct({
  signature: Schema.Struct({ r: Schema.String, s: Schema.String, v: Schema.Number })
})
