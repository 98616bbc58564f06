import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import type { Reaction, ReceivedRequest } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream, idIn } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { inTurn, reset, say, sayHalf, silence } from "@trigate/testing/Reactions"
import * as Effect from "effect/Effect"
import { askedOf, gatewayOver, isAsked } from "./faultyGateway.ts"
import { hashOf } from "./routes.ts"
import { endsAfter, firstShare } from "./time.ts"

/** The word of storage at a slot: the slot itself, so that an answer tells which call it belongs to. */
const word = (slot: number): string => hashOf(slot)
const call = (slot: number, id = `"n${slot}"`): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"eth_getStorageAt","params":` +
  `["0x0123456789abcdef0123456789abcdef01234567","${word(slot)}","latest"]}`

const slotsIn = (body: string): ReadonlyArray<{ readonly id: string; readonly slot: string }> =>
  (Json.elements(body) ?? [body]).map((text) => ({
    id: idIn(text),
    slot: /"(0x[0-9a-f]{64})"/u.exec(text)?.[1] ?? ""
  }))

const answerTo = ({ id, slot }: { readonly id: string; readonly slot: string }): string =>
  `{"jsonrpc":"2.0","id":${id},"result":"${slot}"}`

const answers = ({ body }: ReceivedRequest): ReadonlyArray<string> => slotsIn(body).map(answerTo)

/** Answers a batch as a batch, a call alone as a call alone; a batch's answers are bent first. */
const bent = (bend: (answers: ReadonlyArray<string>, asked: ReceivedRequest) => ReadonlyArray<string>): Reaction =>
  say({
    body: (asked) => {
      const sound = answers(asked)
      return asked.body.startsWith("[") ? `[${bend(sound, asked).join(",")}]` : sound.join("")
    }
  })

const sound = bent((list) => list)

const ask = (url: string) => post(`${url}/evm`, `[${call(1)},${call(2)},${call(3)}]`)

/** What each item of a batch got: the slot that its result names, or the tag of its error. */
const itemsOf = (text: string): ReadonlyArray<readonly [id: unknown, got: unknown]> =>
  (Json.elements(text) ?? []).map((item) => [
    JsonParts.value(item, "id"),
    JsonParts.value(item, "result") ?? JsonParts.value(item, "error", "data", "_tag")
  ])

const right = (slot: number) => [`n${slot}`, word(slot)] as const
const malformed = (slot: number) => [`n${slot}`, "UpstreamMalformed"] as const

const bends: ReadonlyArray<
  readonly [
    what: string,
    bend: (answers: ReadonlyArray<string>, asked: ReceivedRequest) => ReadonlyArray<string>,
    items: ReadonlyArray<readonly [unknown, unknown]>
  ]
> = [
  ["in its own order", (list) => list, [right(1), right(2), right(3)]],
  ["backwards", (list) => list.toReversed(), [right(1), right(2), right(3)]],
  ["with an answer to nobody", (list) => [`{"jsonrpc":"2.0","id":424242,"result":"0x0"}`, ...list], [
    right(1),
    right(2),
    right(3)
  ]],
  ["without the first", (list) => list.slice(1), [malformed(1), right(2), right(3)]],
  ["without the last two", (list) => list.slice(0, 1), [right(1), malformed(2), malformed(3)]],
  ["with one twice, which differ", (list, asked) => [
    ...list,
    answerTo({ id: slotsIn(asked.body)[1]?.id ?? "", slot: word(9) })
  ], [right(1), malformed(2), right(3)]],
  ["with an id as a text", (list) => [...list.slice(0, 2), (list[2] ?? "").replace(/"id":(\d+)/u, `"id":"$1"`)], [
    right(1),
    right(2),
    malformed(3)
  ]],
  ["with null in it", (list) => [...list.slice(0, 2), "null"], [right(1), right(2), malformed(3)]],
  ["empty", () => [], [malformed(1), malformed(2), malformed(3)]]
]

describe("a batch is one request upstream, matched by id, when its answer comes", () => {
  for (const [what, bend, items] of bends) {
    it.effect(what, () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(bent(bend))
        const { url } = yield* gatewayOver({ node: [only] })
        const answer = yield* ask(url)
        assert.strictEqual(answer.status, 200)
        assert.deepStrictEqual(itemsOf(answer.text), items)
        assert.deepStrictEqual(askedOf(only), [1])
        assert.strictEqual(Json.elements(only.requests[0]?.body ?? "")?.length, 3)
      }))
  }

  it.effect("as a single answer to the first: a node without batches is then asked one by one", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream(say({ body: (asked) => answers(asked)[0] ?? "" }))
      const { url } = yield* gatewayOver({ node: [only] })
      const items = itemsOf((yield* ask(url)).text)
      assert.deepStrictEqual(items, [right(1), right(2), right(3)])
      assert.deepStrictEqual(askedOf(only), [4])
    }))

  it.effect("as one error for all of it", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream(
        say({ body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are off"}}` })
      )
      const { url } = yield* gatewayOver({ node: [only] })
      const answer = yield* ask(url)
      assert.strictEqual(Json.elements(answer.text)?.length, 3)
      for (const item of Json.elements(answer.text) ?? []) assert.isDefined(JsonParts.value(item, "error", "code"))
      assert.notInclude(answer.text, `"result"`)
    }))

  it.effect("to calls that all have one id", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream(bent((list) => list.toReversed()))
      const { url } = yield* gatewayOver({ node: [only] })
      const answer = yield* post(`${url}/evm`, `[${call(1, "7")},${call(2, "7")},${call(3, "7")}]`)
      assert.deepStrictEqual(itemsOf(answer.text), [[7, word(1)], [7, word(2)], [7, word(3)]])
      assert.deepStrictEqual(askedOf(only), [1])
    }))
})

const breaks: ReadonlyArray<readonly [what: string, react: Reaction, isSilent: boolean]> = [
  ["a reset", reset, false],
  ["half a body and silence", sayHalf({ body: (asked) => `[${answers(asked).join(",")}]` }, silence), true],
  ["HTML", say({ headers: [["content-type", "text/html"]], body: "<html></html>" }), false],
  ["a 503", say({ status: 503, body: "{}" }), false],
  ["a single object", say({ body: (asked) => answers(asked)[0] ?? "" }), false]
]

describe("a whole batch", () => {
  for (const [what, react, isSilent] of breaks) {
    it.effect(`goes to the next address after ${what}, one request to each`, () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(react)
        const second = yield* faultyUpstream(sound)
        const { url } = yield* gatewayOver({ node: [first, second] })
        const answer = yield* isSilent ? endsAfter(firstShare, ask(url), isAsked(first)) : ask(url)
        assert.deepStrictEqual(itemsOf(answer.text), [right(1), right(2), right(3)])
        assert.deepStrictEqual(askedOf(first, second), [1, 1])
      }))
  }

  it.effect("is asked of a single address once more after a reset", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream(inTurn(reset, sound))
      const { url } = yield* gatewayOver({ node: [only] })
      assert.deepStrictEqual(itemsOf((yield* ask(url)).text), [right(1), right(2), right(3)])
      assert.deepStrictEqual(askedOf(only), [2])
    }))
})
