import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { Inspection } from "@trigate/domain/unstable/Inspection"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import { profileFor } from "@trigate/signing/VenueProfile"
import { isExhaustive, sample, shuffle } from "@trigate/testing/Sample"
import * as Inspector from "@trigate/trading/Inspector"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import {
  anyFormLine,
  broken,
  commonRows,
  merged,
  pairedActions,
  pairRows,
  rareRows,
  rotated,
  rowOf,
  singleRow,
  table,
  unnamedShare
} from "./confusion.ts"
import type { Row } from "./confusion.ts"
import { rareSignings } from "./rareSignings.ts"
import type { Sample } from "./samples.ts"
import * as samples from "./samples.ts"
import { pairs, pairsOfAnyForm } from "./signingMistakes.ts"

const page = fs.readFileSync(path.join(import.meta.dirname, "accuracy.md"), "utf8")

const inspect = ({ body, network, signer }: Sample) =>
  Effect.flatMap(
    Secp256k1.Secp256k1,
    (engine) =>
      Inspector.make(profileFor(network), {}, engine).inspect(Utf8.encode(JSON.stringify(body)), `0x${signer.slice(2)}`)
  )

const namesOf = ({ diagnosis }: Inspection): ReadonlyArray<string> => [
  ...new Set(diagnosis.mistakes.map(({ mistake }) => mistake))
]

const native = Effect.provide(Secp256k1.layer)

describe("a sound body", () => {
  const sources = {
    "@nktkas/hyperliquid": samples.ofPeer,
    ccxt: samples.ofCcxt,
    "a multi-sig of each": samples.wrapped
  }
  const counts = { "@nktkas/hyperliquid": 121, ccxt: 23, "a multi-sig of each": 121 }

  for (const [name, made] of Object.entries(sources)) {
    it.live(`is its signer's, and nothing is wrong with it: ${name}`, () =>
      Effect.gen(function*() {
        const all = yield* Effect.promise(made)
        assert.strictEqual(
          all.length,
          counts[name === "ccxt" || name === "@nktkas/hyperliquid" ? name : "a multi-sig of each"]
        )
        for (const each of sample(`sound bodies: ${name}`, all, 25)) {
          const seen = yield* inspect(each)
          assert.deepStrictEqual(
            [seen.diagnosis.verdict, namesOf(seen), seen.outer?.signer],
            ["fits", [], each.signer],
            each.name
          )
        }
      }).pipe(native))
  }

  it.live("that an SDK publishes as a test vector is its signer's", () =>
    Effect.gen(function*() {
      const found = new Map<string, number>()
      for (const sample of samples.published()) {
        // one has no inner signature at all, which is no body that anybody would send
        if (sample.name.includes("nobody signed inside")) continue
        const seen = yield* inspect(sample)
        assert.strictEqual(seen.outer?.signer, sample.signer, sample.name)
        const names = namesOf(seen).join()
        found.set(names, (found.get(names) ?? 0) + 1)
      }
      // the Rust vectors hash "2000.0", and a nonce of 1234567890 is not of this century's milliseconds
      // four are of a type that no gateway relays
      assert.deepStrictEqual([...found], [["refused", 4], ["", 40], ["trailingZero", 16], ["timeUnit", 3]])
    }).pipe(native))
})

describe("a broken body", () => {
  const rows: Array<Row> = []
  const times = new Map<string, number>()

  for (
    const chosen of [
      ...sample("breaks of a body", commonRows, 12),
      ...sample("rare signings", rareRows, 16, ({ at = 0 }) => rareSignings[at]?.mistake ?? "")
    ]
  ) {
    const { each } = chosen
    it.live(`is told by its mistake and the place of it: ${each.name}`, () =>
      Effect.gen(function*() {
        const sound = yield* broken
        const told = ({ name }: Sample) => times.set(name, (times.get(name) ?? 0) + 1)
        const row = yield* isExhaustive
          ? singleRow(chosen, sound, told)
          : rowOf(each, shuffle(each.name, sound), told, 1)
        rows.push(row)
        assert.isAbove(row.cases, 0)
        assert.deepStrictEqual(row.wrong, [])
      }))
  }

  it("is named nearly always, as the documents say", () => {
    const printed = table(rows)
    console.log(printed)
    // a sample of a few bodies of each break may have more than the whole table
    assert.isAtMost(unnamedShare(rows), isExhaustive ? 0.05 : 0.1)
    if (!isExhaustive) return
    // each action is broken in at least fifteen ways
    assert.deepStrictEqual([...times].filter(([, count]) => count < 15), [])
    assert.include(page, printed, "run npm run inspect:table")
  })
})

/** The actions of a row of pairs: as the documents have them in an exhaustive run, else by the seed. */
const actionsOf = (name: string, row: number, sound: ReadonlyArray<Sample>): ReadonlyArray<Sample> =>
  isExhaustive ? rotated(sound, row) : shuffle(`${name} ${row}`, sound)

describe("a body with two mistakes", () => {
  it.live("is told by both of them, or by nothing", () =>
    Effect.gen(function*() {
      const sound = yield* broken
      const chosen = sample("pairs of mistakes", pairs, 8, ({ name }) => name)
      const rows = merged(
        yield* Effect.forEach(chosen, (each, at) =>
          rowOf(each, actionsOf(each.name, at, sound), undefined, isExhaustive ? pairedActions : 1))
      )
      const printed = table(pairRows(rows), "Two at once, in")
      console.log(printed)
      assert.deepStrictEqual(
        rows.flatMap(({ wrong }) =>
          wrong
        ),
        []
      )
      // a sample of twenty may have more than the whole table
      assert.isAtMost(unnamedShare(rows), isExhaustive ? 0.1 : 0.2)
      if (isExhaustive) assert.include(page, printed, "run npm run inspect:table")
    }))

  it.live("of any form is never told by a wrong one", () =>
    Effect.gen(function*() {
      const sound = yield* broken
      const chosen = sample("pairs of any form", pairsOfAnyForm, 5, ({ name }) => name)
      const rows = yield* Effect.forEach(
        chosen,
        (each, at) => rowOf(each, actionsOf(each.name, at, sound), undefined, 1)
      )
      console.log(anyFormLine(rows))
      if (isExhaustive) assert.include(page, anyFormLine(rows), "run npm run inspect:table")
      assert.deepStrictEqual(
        rows.flatMap(({ wrong }) => wrong),
        []
      )
    }))
})
