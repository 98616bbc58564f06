/**
 * Every action that the public client libraries send, as they sign it, against the sandbox's venue: it reads all that it plays, by
 * the schemas of the catalog, and refuses the rest in words that say so.
 */
import { assert, describe, it } from "@effect/vitest"
import { actionCatalog, innerAction } from "@trigate/domain/actions/Action"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import { actionSchemas } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as SandboxState from "@trigate/sandbox/SandboxState"
import * as VenueExchange from "@trigate/sandbox/unstable/venue/VenueExchange"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as path from "node:path"
import { nonce, ofCcxt, ofPeer, published, type Sample, wrapped } from "../inspector/samples.ts"

const schemas: { readonly [type: string]: AnyCodec } = actionSchemas

/** The action that a body executes. */
const executedBy = ({ body: { action } }: Sample) => innerAction(action) ?? action

describe("the actions of client libraries", () => {
  it.effect("are read by their schemas, and played or refused by name", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const samples = yield* Effect.promise(async () => [
        ...await ofPeer(),
        ...await wrapped(),
        ...await ofCcxt(),
        ...published()
      ])
      const state = yield* Effect.provide(SandboxState.SandboxState, SandboxState.layer())
      const seen = new Set<string>()
      const mistakes: Array<string> = []
      for (const sample of samples) {
        const { type } = executedBy(sample)
        // a wrapper has a signature at least
        const { signatures = [""] } = sample.body.action
        if (!Object.hasOwn(actionCatalog, type) || !Array.isArray(signatures) || signatures.length === 0) continue
        for (const action of new Set([sample.body.action, executedBy(sample)])) {
          seen.add(action.type)
          const schema = schemas[action.type]
          if (schema === undefined || !Schema.is(Schema.toEncoded(schema))(action)) {
            mistakes.push(`${sample.name}: ${action.type} is not of its schema: ${Encoding.stringify(action)}`)
          }
        }
        const profile = sample.network === "mainnet" ? VenueProfile.mainnet : VenueProfile.testnet
        const body = Encoding.encode(Encoding.stringify(sample.body))
        const { status, text } = yield* VenueExchange.submit(profile, state, body)
        const isPlayed = VenueExchange.playedTypes.has(type)
        if (isPlayed ? status !== 200 : !text.endsWith(`the sandbox does not support "${type}"`)) {
          mistakes.push(`${sample.name}: ${status} ${text}`)
        }
      }
      assert.deepStrictEqual(mistakes, [])
      assert.deepStrictEqual(Object.keys(actionCatalog).filter((type) => !seen.has(type)), [])
    }))

  it("that are refused are listed on the page of the sandbox", () => {
    const page = fs.readFileSync(path.join(import.meta.dirname, "../../docs/sandbox.md"), "utf8")
    const [, listed = ""] = /supports all actions of the \[catalog\]\([^)]*\) except (.*?)\. It refuses/su.exec(page) ??
      []
    const refused = Object.keys(actionCatalog).filter((type) => !VenueExchange.playedTypes.has(type))
    assert.deepStrictEqual(listed.match(/\w+/gu), refused)
  })
})
