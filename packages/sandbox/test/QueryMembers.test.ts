/** Each declared query is played or listed as not played, and nothing that a query names is ignored. */
import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import { fastAssetCtxs, outcomeMetaUpdates } from "@trigate/domain/streams/MarketSubscriptions"
import { passthroughQueries } from "@trigate/domain/unstable/info/InfoQueries"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueStreams from "@trigate/sandbox/unstable/streams/VenueStreams"
import { AccountRead } from "@trigate/sandbox/unstable/venue/VenueAccounts"
import * as VenueInfo from "@trigate/sandbox/unstable/venue/VenueInfo"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { act, ask, eth, listOf, place, venueNow } from "./trader.ts"
import { atStart, start } from "./venue.ts"

const user = keys.trader.address
const shape = "Failed to deserialize the JSON body into the target type"

/** The status and the text of a query's response. */
const respond = Effect.fnUntraced(function*(query: object) {
  const { info, seed, trading, venue } = yield* SandboxState
  const view = {
    seed,
    ...yield* Ref.get(info.state),
    venue: yield* Ref.get(venue.state),
    trading: yield* venueNow,
    now: yield* trading.now
  }
  const { status, text } = VenueInfo.answer(view, Utf8.encode(JSON.stringify(query)))
  return `${status} ${text}`
})

/** A query of each declared type, from its declaration. */
const examples: ReadonlyMap<string, object> = new Map([
  ...Object.values(infoOperations).map(({ example, name }) => [name, { type: name, ...example }] as const),
  ...Object.entries(passthroughQueries).map(([type, { about, example }]) =>
    [type, { type, ...(example ?? (about === "user" ? { user } : {})) }] as const
  )
])

const listed = Object.entries(VenueInfo.unplayedQueries).flatMap(([topic, types]) => types.map((type) => [type, topic]))

describe("each declared query", () => {
  it("is played or listed, not both", () => {
    const unplayed = [...examples.keys()].filter((type) => !VenueInfo.playedQueries.has(type))
    const named = listed.map(([type = ""]) => type)
    assert.deepStrictEqual(unplayed.filter((type) => !named.includes(type)), [])
    assert.deepStrictEqual(named.filter((type) => VenueInfo.playedQueries.has(type)), [])
    assert.deepStrictEqual([...VenueInfo.playedQueries].filter((type) => !examples.has(type)), [])
  })

  it.effect("that is listed is refused by its name, with the topic and the section of the documentation", () =>
    atStart(Effect.gen(function*() {
      for (const [type, topic] of listed) {
        assert.strictEqual(
          yield* respond({ type, ...examples.get(type ?? "") }),
          `422 ${shape}: the sandbox does not support "${type}" (${topic}), see docs/sandbox.md#what-it-does-not-support`
        )
      }
      assert.strictEqual(
        yield* respond({ type: "invented" }),
        `422 ${shape}: the sandbox does not support "invented", see docs/sandbox.md#what-it-does-not-support`
      )
    })))
})

/** The optional members of each played query, from its schema. */
const optionalMembers = (ast: AST.AST): ReadonlyArray<readonly [type: string | undefined, member: string]> => {
  if (AST.isUnion(ast)) return ast.types.flatMap(optionalMembers)
  if (!AST.isObjects(ast)) return []
  const literals = ast.propertySignatures.flatMap(({ name, type }) =>
    name !== "type" ? [] : AST.isLiteral(type) ? [type.literal] : AST.isUnion(type)
      ? type.types.flatMap((each) => AST.isLiteral(each) ? [each.literal] : [])
      : []
  )
  const types = literals.length === 0 ? [undefined] : literals.map(String)
  return ast.propertySignatures.flatMap(({ name, type }) =>
    AST.isOptional(type) ? types.map((each) => [each, String(name)] as const) : []
  )
}

describe("a query's members", () => {
  it.effect("are played: each optional one changes the response, and an invented one is named", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositUsd(user, "1000")
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      yield* trading.setBook("ETH", {
        bids: [{ px: "1999.9", sz: "3" }],
        asks: [{ px: "2000", sz: "1" }, { px: "2000.3", sz: "1" }, { px: "2003.7", sz: "1" }]
      })
      yield* place(user, eth, "buy", "2", "2001", { tif: "Ioc" })
      yield* act(user, "twapOrder", { twap: { a: eth, b: true, s: "2", r: false, m: 10, t: false } })
      yield* trading.advance(3_600_000)
      yield* place(user, eth, "sell", "0.01", "1900", { tif: "Ioc" })
      yield* place(user, eth, "buy", "0.1", "1000")
      const created = { name: "v", description: "", initialUsd: 100_000_000, nonce: 1 }
      const vaultAddress = yield* act(user, "createVault", created)
      const late = start + 3_600_001
      /** A value of each optional member that differs from its default in this state, and the rest of the query. */
      const values: { readonly [member: string]: readonly [value: unknown, rest?: object] } = {
        dex: ["xyz"],
        "marginTable dex": ["none", { id: 3 }],
        "perpsAtOpenInterestCap dex": ["xyz"],
        "l2Book nSigFigs": [2, { coin: "ETH" }],
        "l2Book mantissa": [5, { coin: "ETH", nSigFigs: 5 }],
        "vaultDetails user": [user, { vaultAddress }],
        aggregateByTime: [true],
        reversed: [true],
        endTime: [start - 1, { startTime: 0 }],
        "fundingHistory endTime": [start, { startTime: start - 3_600_000 }],
        startTime: [late],
        "userFunding startTime": [late]
      }
      const declared = [
        ...Object.values(infoOperations).flatMap(({ name, request }) =>
          optionalMembers(Schema.toEncoded(request).ast).map(([, member]) => [name, member] as const)
        ),
        ...[...VenueInfo.PassthroughRead.members, ...AccountRead.members].flatMap(({ ast }) => optionalMembers(ast))
      ]
      // in this state, the response is empty whatever the member is
      const empty = new Set(["userBorrowLendInterest endTime", "perpsAtOpenInterestCap dex"])
      const mistakes: Array<string> = []
      for (const [type = "", member] of declared) {
        const name = `${type} ${member}`
        const [value, rest] = values[name] ?? values[member] ?? assert.fail(`${name} has no value in this test`)
        const query = { ...examples.get(type), ...rest }
        const [without, having] = [yield* respond(query), yield* respond({ ...query, [member]: value })]
        if ((without === having) !== empty.has(name)) mistakes.push(`${name}: ${without} ${having}`)
      }
      for (const [type, query] of examples) {
        if (!VenueInfo.playedQueries.has(type)) continue
        const expected = `422 ${shape}: the sandbox does not support "invented" of "${type}"`
        const response = yield* respond({ ...query, invented: 1 })
        if (response !== expected) mistakes.push(`${type}: ${response}`)
      }
      assert.deepStrictEqual(mistakes, [])
    })))

  it.effect("combine the fills of one order if asked, and return the newest first", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
      yield* trading.setBook("ETH", { bids: [], asks: [{ px: "2000", sz: "1" }, { px: "2004", sz: "3" }] })
      yield* place(user, eth, "buy", "4", "2004", { tif: "Ioc" })
      yield* trading.advance(1_000)
      yield* trading.setBook("ETH", { bids: [{ px: "1990", sz: "1" }], asks: [] })
      yield* place(user, eth, "sell", "1", "1990", { tif: "Ioc" })
      const rows = (query: object) =>
        Effect.map(
          ask({ user, ...query }),
          (fills) =>
            listOf(fills).map((fill) => [JsonParts.at(fill, "px"), JsonParts.at(fill, "sz"), JsonParts.at(fill, "fee")])
        )
      const [sold, joined] = [["1990.0", "1.0", "0.8955"], ["2003.0", "4.0", "3.6054"]]
      assert.deepStrictEqual(yield* rows({ type: "userFills", aggregateByTime: true }), [sold, joined])
      const byTime = { type: "userFillsByTime", startTime: 0, aggregateByTime: true }
      assert.deepStrictEqual(yield* rows(byTime), [joined, sold])
      assert.deepStrictEqual(yield* rows({ ...byTime, reversed: true }), [sold, joined])
      assert.deepStrictEqual(yield* rows({ type: "userFills" }), [
        sold,
        ["2004.0", "3.0", "2.7054"],
        ["2000.0", "1.0", "0.9"]
      ])
    })))
})

describe("a subscription", () => {
  it.effect("that the sandbox does not play is refused, and one about outcomes is not", () =>
    atStart(Effect.gen(function*() {
      const frames = VenueStreams.makeFrames(VenueStreams.makeFeed(yield* SandboxState))
      const read = Subscription.reader([fastAssetCtxs, outcomeMetaUpdates])
      const subscription = Result.getOrThrow(read({ type: "outcomeMetaUpdates" }))
      const unknown = { ...subscription, declaration: { ...subscription.declaration, name: "later" } }
      assert.isUndefined(frames(unknown))
      assert.isDefined(frames(subscription))
    })))
})
