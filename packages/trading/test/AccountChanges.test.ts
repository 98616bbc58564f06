/** No state of an account is served that was read before an action changed it. */
import { assert, describe, it } from "@effect/vitest"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import vectors from "../../signing/test/fixtures/signing-vectors.json" with { type: "json" }
import * as admission from "./admission.ts"

const now = 1_705_234_567_890

const signed = (part: string, signedAt = now) => {
  const found = vectors.vectors.find(({ isMainnet, nonce, requestBody }) =>
    isMainnet && nonce === signedAt && requestBody.includes(part)
  )
  assert(found !== undefined)
  return found
}

const plain = signed("\"usingBigBlocks\":true},")
const signer = String(plain.signer)
const inVault = signed("\"vaultAddress\":\"0x")
const vault = /"vaultAddress":"(?<vault>0x[0-9a-fA-F]{40})"/u.exec(inVault.requestBody)?.groups?.["vault"] ?? ""
const ofSeveral = signed("\"multiSigUser\"")
const multiSigUser = /"multiSigUser":"(?<user>0x[0-9a-fA-F]{40})"/u.exec(ofSeveral.requestBody)?.groups?.["user"] ?? ""
const master = `0x${"c".repeat(40)}`
const stranger = `0x${"d".repeat(40)}`

const accepted = ScriptedTransport.response(200, `{"status":"ok","response":{"type":"default"}}`)
const agentOf = (user: string) => ScriptedTransport.response(200, `{"role":"agent","data":{"user":"${user}"}}`)
const itself = ScriptedTransport.response(200, `{"role":"user"}`)

interface Script {
  readonly exchange?: ScriptedTransport.Reaction
  readonly role?: ScriptedTransport.Reaction
  /** Holds back the states of accounts until it is open. */
  readonly gate?: Deferred.Deferred<void>
}

/** A venue whose states of accounts have numbers, and the services over it, which cache such states for a minute. */
const setup = ({ exchange = accepted, gate, role = itself }: Script = {}) => {
  let states = 0
  const asked: Array<string> = []
  const transport = ScriptedTransport.make(({ body, url }) => {
    if (url.endsWith("/exchange")) return exchange
    const type = /"type":"(?<type>\w+)"/u.exec(body)?.groups?.["type"] ?? ""
    asked.push(type)
    if (type === "userRole") return role
    if (type === "extraAgents") {
      return ScriptedTransport.response(
        200,
        `[{"address":"${signer.toUpperCase().replace("0X", "0x")}","name":"bot","validUntil":1}]`
      )
    }
    const answer = ScriptedTransport.response(200, `{"state":${++states}}`)
    return gate === undefined ? answer : Effect.as(Deferred.await(gate), answer)
  })
  const cached = { type: "clearinghouseState", fresh: Duration.minutes(1) }
  const addresses = { api: ["https://api.test"] }
  const layer = Layer.mergeAll(
    TradingUpstream.layerInfo(addresses, { infoFreshness: [cached] }),
    TradingUpstream.layerExchange(addresses)
  ).pipe(
    Layer.provide([admission.layer({ relayActions: "all" }), ActionLogMemory.layer(), transport.layer])
  )
  return { layer, count: (type: string) => asked.filter((each) => each === type).length }
}

const query = (type: string, user: string) =>
  Effect.gen(function*() {
    const call = yield* InfoProtocol.parseCall(Encoding.write({ type, user }), "gateway", true)
    return (yield* Info.use(({ relay }) => relay(call))).text
  })
const stateOf = (user: string) =>
  Effect.map(query("clearinghouseState", user), (text) => Number(/\d+/u.exec(text)?.[0]))

const send = (text: string) => Exchange.use(({ relay }) => relay({ body: Encoding.encode(text), surface: "gateway" }))

const run = <A, E>(script: ReturnType<typeof setup>, test: Effect.Effect<A, E, Exchange | Info>) =>
  Effect.andThen(TestClock.setTime(now), test).pipe(Effect.provide(script.layer))

/** What is left in the cache of the states of some accounts, of which each was read once before an action. */
const leftAfter = Effect.fnUntraced(function*(accounts: ReadonlyArray<string>, body: string) {
  const before = yield* Effect.forEach(accounts, stateOf)
  yield* Effect.exit(send(body))
  // its master becomes known
  yield* TestClock.adjust(1)
  const after = yield* Effect.forEach(accounts, stateOf)
  return accounts.filter((_, index) => before[index] === after[index])
})

describe("an action that the venue takes", () => {
  it.effect("drops the state of its signer, and of nobody else", () =>
    run(
      setup(),
      Effect.map(leftAfter([signer, stranger], plain.requestBody), (left) => assert.deepStrictEqual(left, [stranger]))
    ))

  it.effect("drops that of its vault", () =>
    run(
      setup(),
      Effect.map(
        leftAfter([String(inVault.signer), vault.toLowerCase(), stranger], inVault.requestBody),
        (left) => assert.deepStrictEqual(left, [stranger])
      )
    ))

  it.effect("drops that of an account for which several sign", () =>
    run(
      setup(),
      Effect.map(
        leftAfter([multiSigUser, stranger], ofSeveral.requestBody),
        (left) => assert.deepStrictEqual(left, [stranger])
      )
    ))

  it.effect("drops that of the master for whom an API wallet signs, who is asked for once", () => {
    const venue = setup({ role: agentOf(master) })
    return run(
      venue,
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* leftAfter([master, signer, stranger], plain.requestBody), [stranger])
        const next = signed("usingBigBlocks", now + 6)
        assert.strictEqual(next.signer, signer)
        assert.deepStrictEqual(yield* leftAfter([master, stranger], next.requestBody), [stranger])
        assert.strictEqual(venue.count("userRole"), 1)
      })
    )
  })

  for (const [type, user] of [["userRole", signer], ["extraAgents", master]] as const) {
    it.effect(`drops that of a master whom a response to ${type} has told`, () => {
      const venue = setup({ role: agentOf(master) })
      return run(
        venue,
        Effect.gen(function*() {
          yield* query(type, user)
          const before = yield* stateOf(master)
          yield* send(plain.requestBody)
          assert.strictEqual(yield* stateOf(master), before + 1)
          assert.strictEqual(yield* stateOf(master), before + 1)
          assert.strictEqual(venue.count("userRole"), type === "userRole" ? 1 : 0)
        })
      )
    })
  }

  it.effect("keeps states apart for two seconds while its master is not known, and drops all of them then", () => {
    const venue = setup({ role: ScriptedTransport.response(503, "{}") })
    return run(
      venue,
      Effect.gen(function*() {
        const before = yield* stateOf(stranger)
        yield* send(plain.requestBody)
        const [one, other] = yield* Effect.all([stateOf(stranger), stateOf(stranger)], { concurrency: 2 })
        assert.deepStrictEqual([one, other], [before + 1, before + 2])
        yield* TestClock.adjust(1999)
        assert.strictEqual(yield* stateOf(stranger), before + 3)
        yield* TestClock.adjust(1)
        assert.strictEqual(yield* stateOf(stranger), before + 4)
        assert.strictEqual(yield* stateOf(stranger), before + 4)
      })
    )
  })

  it.effect("asks for no master where nobody reads the state of accounts", () => {
    const venue = setup()
    return run(
      venue,
      Effect.gen(function*() {
        yield* send(plain.requestBody)
        assert.strictEqual(venue.count("userRole"), 0)
      })
    )
  })

  it.effect("keeps a read that was in flight from those that come later, and out of the cache", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const venue = setup({ gate })
      yield* run(
        venue,
        Effect.gen(function*() {
          yield* query("userRole", signer)
          const early = yield* Effect.forkChild(stateOf(signer), { startImmediately: true })
          const follower = yield* Effect.forkChild(stateOf(signer), { startImmediately: true })
          yield* send(plain.requestBody)
          const late = yield* Effect.forkChild(stateOf(signer), { startImmediately: true })
          assert.strictEqual(venue.count("clearinghouseState"), 2)
          yield* Deferred.succeed(gate, undefined)
          assert.deepStrictEqual(yield* Fiber.joinAll([early, follower, late]), [1, 1, 2])
          assert.strictEqual(yield* stateOf(signer), 2)
        })
      )
    }))
})

describe("an action of which the venue", () => {
  const outcomes: ReadonlyArray<readonly [name: string, answer: ScriptedTransport.Reaction, dropped: boolean]> = [
    ["may have taken any part drops the state", ScriptedTransport.broken, true],
    [
      "takes a part drops the state",
      ScriptedTransport.response(
        200,
        `{"status":"ok","response":{"type":"order","data":{"statuses":[{"error":"no"},{"filled":{}}]}}}`
      ),
      true
    ],
    ["takes nothing leaves the state", ScriptedTransport.response(200, `{"status":"err","response":"no"}`), false],
    ["does not know the form leaves the state", ScriptedTransport.response(422, "Failed to deserialize"), false],
    ["gets nothing leaves the state", ScriptedTransport.unreachable, false]
  ]
  for (const [name, exchange, dropped] of outcomes) {
    it.effect(name, () =>
      run(
        setup({ exchange }),
        Effect.map(
          leftAfter([signer], plain.requestBody),
          (left) => assert.deepStrictEqual(left, dropped ? [] : [signer])
        )
      ))
  }
})
