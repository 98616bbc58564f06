/** Dead man's switches: what can be left to the gateway, when it is sent, and by whom. */
import { assert, layer } from "@effect/vitest"
import type { OrderId } from "@trigate/domain/actions/ActionOutcome"
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { UpstreamUnavailable, wrapReason } from "@trigate/domain/errors/GatewayError"
import type { SandboxSigner } from "@trigate/sandbox"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import { ActionLog, UsedNonces } from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import { Exchange } from "@trigate/trading/Exchange"
import * as DeadMansSwitch from "@trigate/trading/guard/DeadMansSwitch"
import * as GuardStore from "@trigate/trading/guard/GuardStore"
import { Info } from "@trigate/trading/Info"
import * as Inspector from "@trigate/trading/Inspector"
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { act, fixPrices, orderOf, orders, sandbox, send, sign, start, stranger, trader } from "./guarded.ts"

type Action = SandboxSigner.Unsigned["action"]

const cancel = (o: OrderId): Action => ({ type: "cancel", cancels: [{ a: 0, o }] })

const text = (action: Action, envelope: Partial<SandboxSigner.Unsigned> = {}, key: TestKey = trader) =>
  Effect.map(sign(key, action, envelope), Encoding.stringify)

/** The bodies of some actions, signed in this order. */
const texts = (...actions: ReadonlyArray<Action>) => Effect.forEach(actions, (action) => text(action))

const arm = Effect.fnUntraced(function*(
  { arm }: DeadMansSwitch.DeadMansSwitch["Service"],
  bodies: ReadonlyArray<string>,
  options: { readonly name?: string; readonly presence?: boolean } = {}
) {
  const { name = "bot", ...rest } = options
  return yield* arm(name, { after: 10, actions: yield* DeadMansSwitch.readActions(bodies), ...rest })
})

/** The exchange of the context, with a list of the nonces that it was given. */
const recorded = Effect.map(Exchange, ({ relay }) => {
  const sent: Array<number> = []
  return {
    sent,
    relay: ((call) => {
      sent.push(Number(/"nonce":(\d+)/u.exec(new TextDecoder().decode(call.body))?.[1]))
      return relay(call)
    }) satisfies typeof relay
  }
})

const nonces = (bodies: ReadonlyArray<string>) => bodies.map((body) => Number(/"nonce":(\d+)/u.exec(body)?.[1]))

const refusal = (bodies: ReadonlyArray<string>) =>
  Effect.map(Effect.flip(DeadMansSwitch.readActions(bodies)), ({ detail }) => detail)

const services = Layer.provideMerge(Inspector.layer(), sandbox)

layer(services)("a dead man's switch", (it) => {
  it.effect("takes cancels and reduce-only orders of one signer, and nothing else", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const [one = "", other = ""] = yield* texts(
        cancel(1),
        orders(orderOf(0, "sell", "0.01", "50000", { r: true, tif: "Ioc" }))
      )
      const read = yield* DeadMansSwitch.readActions([one, other])
      assert.deepStrictEqual(read.map(({ actionType, signer }) => [actionType, signer]), [
        ["cancel", trader.address],
        ["order", trader.address]
      ])
      assert.deepStrictEqual(read.map(({ text }) => text), [one, other])
      const [order = ""] = yield* texts(orders(orderOf(0, "buy", "0.01", "50000")))
      assert.match((yield* refusal([one, order])) ?? "", /actions.*1.*order: only cancels/u)
      assert.match((yield* refusal([one, yield* text(cancel(1), {}, stranger)])) ?? "", /different signers/u)
      assert.match((yield* refusal([one, one])) ?? "", /same nonce/u)
      assert.match((yield* refusal(["{}"])) ?? "", /actions/u)
      const unsigned = one.replace(/"r":"0x[0-9a-f]+"/u, `"r":"0x${"0".repeat(64)}"`)
      assert.match((yield* refusal([unsigned])) ?? "", /actions.*0/u)
    }))

  it.effect("sends its actions in order when the heartbeats stop, once", () =>
    Effect.gen(function*() {
      yield* fixPrices
      yield* act(trader, orders(orderOf(0, "buy", "0.01", "50000"), orderOf(0, "buy", "0.01", "50100")))
      const { frontendOpenOrders } = yield* Info
      const open = yield* frontendOpenOrders({ user: trader.address })
      const oids = open.map(({ oid }) => oid)
      const { relay, sent } = yield* recorded
      const switches = yield* DeadMansSwitch.make({ relay, log: yield* ActionLog })
      assert.strictEqual((yield* switches.beat("bot")).state, "absent")
      const bodies = yield* texts(...oids.map(cancel), cancel(12_345))
      assert.strictEqual((yield* arm(switches, bodies)).state, "armed")
      for (let beat = 1; beat <= 5; beat++) {
        yield* TestClock.adjust("9 seconds")
        const { heartbeats, state } = yield* switches.beat("bot")
        assert.deepStrictEqual([heartbeats, state], [beat, "armed"])
      }
      assert.deepStrictEqual(sent, [])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(sent, [])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(sent, nonces(bodies))
      assert.deepStrictEqual(yield* frontendOpenOrders({ user: trader.address }), [])
      const fired = yield* switches.beat("bot")
      assert.strictEqual(fired.state, "fired")
      assert.deepStrictEqual(fired.actions.map(({ outcome }) => outcome), ["accepted", "accepted", "accepted"])
      assert.match(fired.actions[2]?.detail ?? "", /already canceled|never placed/iu)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(sent, nonces(bodies))
      // armed again, and disarmed
      assert.strictEqual((yield* arm(switches, yield* texts(cancel(1)))).state, "armed")
      assert.strictEqual((yield* switches.disarm("bot")).state, "absent")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(sent.length, 3)
    }).pipe(Effect.scoped))

  it.effect("stays armed while its caller has an open WebSocket, if it asks for that", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const { relay, sent } = yield* recorded
      const present = new Set(["key:one"])
      const switches = yield* DeadMansSwitch.make({
        relay,
        log: yield* ActionLog,
        isPresent: (caller) => present.has(caller)
      })
      const as = (id: string) => Effect.provideService(CurrentCaller, { id, scope: {}, quota: {} })
      const [one = "", other = ""] = yield* texts(cancel(1), cancel(2))
      yield* as("key:one")(arm(switches, [one], { presence: true }))
      yield* as("key:other")(arm(switches, [other]))
      yield* TestClock.adjust("60 seconds")
      assert.deepStrictEqual(sent, nonces([other]))
      assert.strictEqual((yield* as("key:one")(switches.find("bot"))).state, "armed")
      assert.strictEqual((yield* as("key:third")(switches.find("bot"))).state, "absent")
      present.clear()
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(sent, nonces([other, one]))
    }).pipe(Effect.scoped))

  it.effect("says why the venue would refuse its actions", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const { relay } = yield* recorded
      const used = new UsedNonces()
      const switches = yield* DeadMansSwitch.make({ relay, log: yield* ActionLog, used })
      const expiring = yield* text(cancel(1), { expiresAfter: start + 15_000 })
      assert.strictEqual((yield* arm(switches, [expiring])).state, "armed")
      yield* TestClock.adjust("6 seconds")
      assert.match((yield* switches.beat("bot")).reason ?? "", /^Action 0 expires before/u)
      const refused = yield* Effect.flip(arm(switches, [yield* text(cancel(1), { expiresAfter: start + 15_000 })]))
      assert.strictEqual(refused._tag, "InvalidRequest")
      yield* arm(switches, yield* texts(cancel(1)))
      for (let count = 0; count < 100; count++) used.note(trader.address)
      const { reason, state } = yield* switches.beat("bot")
      assert.strictEqual(state, "useless")
      assert.match(reason ?? "", /^The signer has sent 100 further actions/u)
      assert.strictEqual((yield* arm(switches, yield* texts(cancel(2)))).state, "armed")
      assert.strictEqual((yield* switches.beat("bot")).state, "armed")
    }).pipe(Effect.scoped))

  it.effect("sends nothing while the action log cannot be read, and not what the log has", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const { relay, sent } = yield* recorded
      const log = yield* ActionLog
      let isAway = true
      const switches = yield* DeadMansSwitch.make({
        relay,
        log: {
          find: (reference) =>
            isAway
              ? Effect.fail(new UpstreamUnavailable({ upstream: "action-log", attempts: 1 }))
              : log.find(reference)
        }
      })
      const first = yield* sign(trader, cancel(1))
      const bodies = [Encoding.stringify(first), yield* text(cancel(2))]
      // another process has sent the first action
      yield* send(first)
      yield* arm(switches, bodies)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(sent, [])
      isAway = false
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(sent, nonces(bodies.slice(1)))
    }).pipe(Effect.scoped))

  it.effect("sends an action again that was certainly not sent, and no other", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const { relay, sent } = yield* recorded
      let isAway = true
      const switches = yield* DeadMansSwitch.make({
        relay: (call) =>
          isAway
            ? Effect.fail(wrapReason(new UpstreamUnavailable({ upstream: "trading-api", attempts: 1 })))
            : relay(call),
        log: yield* ActionLog
      })
      const bodies = yield* texts(cancel(1), cancel(2))
      yield* arm(switches, bodies)
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* switches.find("bot")).state, "firing")
      isAway = false
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(sent, nonces(bodies))
      assert.strictEqual((yield* switches.find("bot")).state, "fired")
    }).pipe(Effect.scoped))
})

/** Two replicas over one store, whose operations fail while it is away. */
const replicas = Effect.gen(function*() {
  const memory = GuardStore.makeMemory()
  const store = { isAway: false }
  const away = Effect.fail(new SharedStoreUnreachable({ detail: "away" }))
  const shared = GuardStore.GuardStore.of({
    get: (key) => Effect.suspend(() => store.isAway ? away : memory.get(key)),
    put: (key, version, text) => Effect.suspend(() => store.isAway ? away : memory.put(key, version, text))
  })
  const { relay, sent } = yield* recorded
  const log = Context.get(yield* Layer.build(ActionLogMemory.layer()), ActionLog)
  const replica = Effect.gen(function*() {
    const scope = yield* Scope.make()
    const switches = yield* Scope.provide(DeadMansSwitch.make({ relay, log, store: shared }), scope)
    return { ...switches, scope }
  })
  return { sent, shared, store, one: yield* replica, other: yield* replica }
})

layer(services)("the dead man's switches of two replicas", (it) => {
  it.effect("are fired by one of them, and beaten by both", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const { one, other, sent, store } = yield* replicas
      const bodies = yield* texts(cancel(1), cancel(2), cancel(3))
      yield* arm(one, bodies)
      for (let beat = 0; beat < 6; beat++) {
        yield* TestClock.adjust("9 seconds")
        assert.strictEqual((yield* (beat % 2 === 0 ? other : one).beat("bot")).state, "armed")
      }
      // no heartbeat can arrive while the store is away
      store.isAway = true
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual((yield* Effect.flip(one.beat("bot")))._tag, "SharedStoreUnreachable")
      store.isAway = false
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual(sent, [])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(sent, nonces(bodies))
      assert.deepStrictEqual(
        [yield* one.find("bot"), yield* other.find("bot")].map(({ state }) => state),
        ["fired", "fired"]
      )
    }).pipe(Effect.scoped))

  it.effect("fire although another switch cannot be read", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const { one, sent, shared } = yield* replicas
      const bodies = yield* texts(cancel(1), cancel(2))
      yield* arm(one, bodies.slice(0, 1), { name: "broken" })
      yield* arm(one, bodies.slice(1))
      const key = "switch local broken"
      yield* shared.put(key, (yield* shared.get(key))?.version ?? 0, "{}")
      assert.strictEqual((yield* Effect.flip(one.beat("broken")))._tag, "SharedStoreUnreachable")
      yield* TestClock.adjust("15 seconds")
      assert.deepStrictEqual(sent, nonces(bodies.slice(1)))
    }).pipe(Effect.scoped))
})
