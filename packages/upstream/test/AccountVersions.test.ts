import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import { monotonicTime } from "@trigate/domain/encoding/Encoding"
import * as Access from "@trigate/simulation/unstable/stores/Access"
import * as RedisCache from "@trigate/simulation/unstable/stores/RedisCache"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import type { RedisServer } from "@trigate/testing/RedisServer"
import { layerMemory, layerRedis } from "@trigate/upstream/cache/AccountVersions"
import { AccountVersions } from "@trigate/upstream/cache/AccountVersions"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"

const [one, other, wallet] = ["1", "2", "a"].map((digit) => `0x${digit.repeat(40)}`) as [string, string, string]

type Versions = AccountVersions["Service"]

/** The same for the versions of one process, and for two processes that share theirs: `there` sees what happens `here`. */
const suite = (here: Versions, there: Versions) =>
  Effect.gen(function*() {
    const version = (account: string) =>
      Effect.flatMap(Clock.Clock, (clock) => there.version([account], monotonicTime(clock)))
    assert.isFalse(yield* here.change(wallet, [wallet]))
    const begin = yield* version(one)
    assert.notStrictEqual(begin, undefined)

    // the account of a wallet is not known: nothing is shared for two seconds, and then everything has changed
    assert.isTrue(yield* here.change(wallet, [wallet]))
    assert.isUndefined(yield* version(one))
    yield* TestClock.adjust(1999)
    assert.isUndefined(yield* version(one))
    yield* TestClock.adjust(1)
    const afterSearch = yield* version(one)
    assert.isDefined(afterSearch)
    assert.notStrictEqual(afterSearch, begin)

    // it becomes known in time: only its account has changed
    assert.isTrue(yield* here.change(wallet, [wallet]))
    const ofOther = yield* Effect.andThen(here.learn(wallet, [one]), version(other))
    const ofOne = yield* version(one)
    assert.isDefined(ofOther)
    assert.isDefined(ofOne)
    assert.notStrictEqual(ofOne, afterSearch)

    // it is known: nothing is held back
    assert.isFalse(yield* here.change(wallet, [wallet]))
    assert.notStrictEqual(yield* version(one), ofOne)
    assert.strictEqual(yield* version(other), ofOther)

    // the other process knows it, too
    assert.isFalse(yield* there.change(wallet, [wallet]))
    assert.strictEqual(yield* version(other), ofOther)

    // for an hour, or for a day by the clock of Redis
    yield* TestClock.adjust(3_600_000)
    yield* version(one)
    assert.strictEqual(yield* here.change(wallet, []), here === there)
    yield* here.learn(wallet, [])

    // a search that stays open is not ended by another one
    assert.isTrue(yield* here.change("a", []))
    assert.isTrue(yield* here.change("b", []))
    const before = yield* Effect.andThen(here.learn("b", []), version(other))
    assert.isUndefined(before)
    yield* TestClock.adjust(2000)
    assert.notStrictEqual(yield* version(other), ofOther)

    // where nobody reads the state of accounts, nobody has to look for one
    yield* TestClock.adjust(60_001)
    assert.isFalse(yield* here.change("c", []))
    assert.isDefined(yield* version(one))
  })

/** A store of the versions, as a test starts it. */
interface Server extends Pick<RedisServer, "kill" | "restart"> {
  readonly layer: Layer.Layer<AccountVersions>
}

const options = { deadline: "10 seconds" } as const

const realServer = Effect.map(redisServer, ({ url, ...server }): Server => ({
  ...server,
  layer: layerRedis(options).pipe(
    Layer.provide(Layer.orDie(NodeRedis.layer({ url, disableOfflineQueue: true }))),
    Layer.provideMerge(Logger.layer([]))
  )
}))

const simulatedServer = Effect.sync((): Server => {
  const store = RedisCache.make()
  const { access, kill, restart } = Access.makeSwitched()
  return {
    kill,
    restart: Effect.andThen(Effect.sync(store.clear), restart),
    layer: Layer.provideMerge(RedisCache.layerVersions(store, access, options), Logger.layer([]))
  }
})

const servers = [
  { name: "Redis", isInstalled, start: realServer },
  { name: "a simulated Redis", isInstalled: true, start: simulatedServer }
]

const sharedAt = ({ layer }: Server) => Effect.map(Layer.build(Layer.fresh(layer)), Context.get(AccountVersions))

/** The version at the present time. */
const versionOf = ({ version }: AccountVersions["Service"]) => (accounts: ReadonlyArray<string>) =>
  Effect.flatMap(Clock.Clock, (clock) => version(accounts, monotonicTime(clock)))

describe("AccountVersions", () => {
  it.effect("of one process", () =>
    Effect.gen(function*() {
      const versions = yield* AccountVersions
      yield* suite(versions, versions)
    }).pipe(Effect.provide(layerMemory())))

  it.effect("are those of the accounts that are read", () =>
    Effect.gen(function*() {
      const versions = yield* AccountVersions
      const { change, learn } = versions
      const version = versionOf(versions)
      assert.strictEqual(yield* version([one, other]), "")
      yield* learn(one, [])
      yield* change(one, [one])
      assert.notStrictEqual(yield* version([other, one]), yield* version([other]))
    }).pipe(Effect.provide(layerMemory())))

  it.effect("are read again after a search of two seconds, also when the system clock was set back", () =>
    Effect.gen(function*() {
      const versions = yield* AccountVersions
      const version = versionOf(versions)
      yield* TestClock.adjust("1 hour")
      yield* version([one])
      assert.isTrue(yield* versions.change(wallet, [wallet]))
      assert.isUndefined(yield* version([one]))
      yield* TestClock.setTime(0)
      yield* TestClock.adjust("2 seconds")
      assert.isDefined(yield* version([one]))
    }).pipe(Effect.provide(layerMemory())))

  describe.each(servers.filter((server) => server.isInstalled))("over $name", ({ start }) => {
    it.effect("of two processes", () =>
      Effect.gen(function*() {
        const server = yield* start
        yield* TestClock.setTime(1_000_000)
        yield* suite(yield* sharedAt(server), yield* sharedAt(server))
      }))

    it.effect("are not read by a process that is writing a new one", () =>
      Effect.gen(function*() {
        const server = yield* start
        const versions = yield* sharedAt(server)
        const version = versionOf(versions)
        const before = yield* version([one, other])
        const writing = yield* Effect.forkChild(versions.invalidate([one]), { startImmediately: true })
        assert.isUndefined(yield* version([other, one]))
        assert.isDefined(yield* version([other]))
        yield* Fiber.join(writing)
        const after = yield* version([one, other])
        assert.isDefined(after)
        assert.notStrictEqual(after, before)
      }))

    it.effect("share nothing while Redis is away, nor for a minute after a change that it did not get", () =>
      Effect.gen(function*() {
        const server = yield* start
        yield* TestClock.setTime(1_000_000)
        const versions = yield* sharedAt(server)
        const { change } = versions
        const version = versionOf(versions)
        const before = yield* version([one])
        assert.isDefined(before)
        yield* server.kill
        assert.isUndefined(yield* version([one]))
        yield* change(one, [one])
        yield* server.restart
        yield* TestClock.adjust(59_999)
        assert.isUndefined(yield* version([one]))
        const isShared = Effect.andThen(Effect.sleep(10), version([one]))
        const after = yield* advancingClock(Effect.repeat(isShared, { until: (found) => found !== undefined }))
        // Redis has lost the versions: those from before must not apply to other states
        assert.notStrictEqual(after, before)
      }))
  })
})
