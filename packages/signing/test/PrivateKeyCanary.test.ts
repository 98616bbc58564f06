import { assert, describe, it } from "@effect/vitest"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as Signable from "@trigate/signing/unstable/actions/ActionHash"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Tracer from "effect/Tracer"
import { inspect } from "node:util"
import { privateKeyToAccount } from "viem/accounts"
import { hexToBytes } from "viem/utils"

const key = "0xc0ffee5ec2e7c0ffee5ec2e7c0ffee5ec2e7c0ffee5ec2e7c0ffee5ec2e7c0ff"

const bytes = hexToBytes(key)

/** The key in the forms in which it could mistake out. */
const canaries = [
  key.slice(2),
  key.slice(2).toUpperCase(),
  BigInt(key).toString(),
  bytes.join(","),
  bytes.join(", "),
  Buffer.from(bytes).toString("base64")
]

const account = privateKeyToAccount(key)

const assertSilent = (where: string, found: string) => {
  const text = found.replaceAll(/\s+/gu, " ")
  for (const canary of canaries) {
    assert.isFalse(text.includes(canary), `${where}: ${text.slice(0, 200)}`)
    assert.isFalse(text.includes(canary.slice(0, 24)), `${where}, in part: ${text.slice(0, 200)}`)
  }
}

const json = (value: unknown) =>
  JSON.stringify(value, (_key, member: unknown) => typeof member === "bigint" ? String(member) : member) ?? ""

const assertHidden = (where: string, value: unknown) => {
  assertSilent(
    `${where}, inspected`,
    inspect(value, { depth: 12, showHidden: true, getters: true, breakLength: Infinity })
  )
  assertSilent(`${where}, as JSON`, json(value))
  assertSilent(`${where}, as text`, `${inspect(value)} ${String(value)}`)
}

const l1 = { nonce: 1_700_000_000_000 }

/** Signs, logs everything within reach, and fails in every way that it can. */
const uses = (signer: Signer.Signer["Service"]) => {
  const build: ReadonlyArray<Effect.Effect<unknown, ActionBuilder.BuildFailure, Signer.Signer | VenueProfile.Venue>> = [
    ActionBuilder.useBigBlocks(l1),
    ActionBuilder.jailSelf(l1).pipe(Effect.provideService(VenueProfile.Venue, VenueProfile.testnet)),
    ActionBuilder.delegate({ ...l1, validator: signer.address, wei: 0n }),
    ActionBuilder.delegate({ ...l1, validator: signer.address, wei: 5n }),
    ActionBuilder.signL1({ type: "order", bad: Number.NaN }, l1)
  ]
  return Effect.forEach(build, (body) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Effect.withSpan(body, "build", { attributes: { signer } }))
      yield* Effect.log("signed", signer, exit)
      yield* Effect.logError(Exit.isFailure(exit) ? exit.cause : exit.value)
      assertHidden("exit", exit)
      if (Exit.isFailure(exit)) {
        assertSilent("cause", Cause.pretty(exit.cause))
      }
    })).pipe(
      Effect.provideService(Signer.Signer, signer),
      Effect.provideService(VenueProfile.Venue, VenueProfile.mainnet)
    )
}

const leaky = new Error(`cannot sign with ${key}`, { cause: { key } })

const signers: Readonly<
  Record<string, Effect.Effect<Signer.Signer["Service"], Signer.SignerFailure | Signer.InvalidPrivateKey>>
> = {
  native: Effect.provide(Signer.makePrivateKey(Redacted.make(key)), Secp256k1.layer),
  noble: Signer.makePrivateKey(Redacted.make(key)),
  viem: Signer.makeViem(account),
  "viem that fails": Signer.makeViem({ address: account.address, signTypedData: () => Promise.reject(leaky) }),
  "viem of another": Signer.makeViem({
    address: "0x0000000000000000000000000000000000000001",
    signTypedData: (data) => account.signTypedData(data)
  }),
  external: Signer.makeExternal({
    address: account.address,
    signDigest: (hash) => Effect.promise(() => account.sign({ hash }))
  }),
  "external that fails": Signer.makeExternal({ address: account.address, signDigest: () => Effect.fail(leaky) }),
  "external that answers with the key": Signer.makeExternal({
    address: account.address,
    signDigest: () => Effect.succeed(key)
  })
}

const log: Array<string> = []

const collected = Logger.layer([
  ...[Logger.formatSimple, Logger.formatLogFmt, Logger.formatJson].map((format) =>
    Logger.map(format, (line) => void log.push(line))
  ),
  Logger.make(({ cause, message }) => void log.push(inspect(message, { depth: 12 }), Cause.pretty(cause)))
])

/** Everything that a logger, a console or a stream gets while the effect runs. */
const printedBy = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<string, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const names = ["log", "info", "warn", "error", "debug", "trace"] as const
      const printed: Array<string> = []
      const consoles = names.map((name) => [name, console[name]] as const)
      const streams = [process.stdout, process.stderr].map((stream) => [stream, stream.write.bind(stream)] as const)
      for (const name of names) {
        console[name] = (...values: ReadonlyArray<unknown>) => {
          printed.push(
            values.map((value) => typeof value === "string" ? value : inspect(value, { depth: 12 })).join(" ")
          )
        }
      }
      for (const [stream] of streams) {
        stream.write = (chunk: string | Uint8Array) => printed.push(String(chunk)) > 0
      }
      return { consoles, printed, streams }
    }),
    ({ printed }) =>
      Effect.provide(effect, collected).pipe(
        Effect.map(() => [...log.splice(0), ...printed].join("\n"))
      ),
    ({ consoles, streams }) =>
      Effect.sync(() => {
        for (const [name, original] of consoles) console[name] = original
        for (const [stream, write] of streams) stream.write = write
      })
  )

const traced = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>) {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  yield* Effect.provideService(effect, Tracer.Tracer, tracer)
  return spans
})

describe("a private key", () => {
  it("would be seen by this test", () => {
    for (const leak of [{ key }, { nested: [new Map([[1, bytes]])] }, new Error(key)]) {
      assert.throws(() => assertHidden("planted", leak))
    }
  })

  for (const [name, make] of Object.entries(signers)) {
    it.effect(`reaches no log, error, span or inspection: ${name}`, () =>
      Effect.gen(function*() {
        const signer = yield* make
        assertHidden("signer", signer)
        assertHidden("layer", Signer.layerPrivateKey(Redacted.make(key)))
        let spans: ReadonlyArray<Tracer.NativeSpan> = []
        const printed = yield* printedBy(Effect.map(traced(uses(signer)), (found) => {
          spans = found
        }))
        assert.isTrue(printed.includes(signer.address))
        assertSilent("printed", printed)
        assert.isTrue(spans.length > 0)
        for (const { attributes, events, name, status } of spans) {
          assertHidden(`span ${name}`, [[...attributes], events, status])
        }
      }))
  }

  it.effect("is not repeated when it is refused", () =>
    Effect.gen(function*() {
      for (const text of [`${key}00`, ` ${key}`, `${key.slice(2)},`, `key=${key}`]) {
        for (const layer of [Secp256k1.layer, Secp256k1.layerNoble]) {
          const exit = yield* Effect.exit(Effect.provide(Signer.makePrivateKey(Redacted.make(text)), layer))
          assert(Exit.isFailure(exit))
          assertHidden("refusal", exit)
          assertSilent("refusal", Cause.pretty(exit.cause))
        }
      }
    }))

  it.effect("is in no defect of an engine that is handed something else", () =>
    Effect.gen(function*() {
      const engine = yield* Secp256k1.Secp256k1.pipe(Effect.provide(Secp256k1.layer))
      for (const found of [engine, Secp256k1.noble]) {
        assertHidden("engine", [found.sign(bytes.slice(1), bytes), found.sign(bytes, bytes.slice(1))])
        assertHidden("signature", found.sign(hexToBytes(Signable.digest(dummy)), bytes))
      }
    }))
})

const dummy: Signable.Signable = {
  domain: Signable.domain("Test", 1),
  struct: Signable.structType("Test", []),
  members: []
}
