/** The clock, prices, faults and accounts of a sandbox. The calls need a connection to its admin listener. */
import * as Paths from "@trigate/api/Paths"
import * as SandboxApi from "@trigate/api/unstable/SandboxApi"
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import * as Schema from "effect/Schema"
import { postOwn, readOwn } from "./internal/Served.ts"

const postBots = postOwn("startSandboxBots", SandboxApi.BotStart, SandboxApi.BotCost)

/** Makes a method that changes the sandbox: it sends a payload, and returns the sandbox's new state. */
const control = <S extends AnyCodec>(name: string, path: string, payload: S) => {
  const post = postOwn(name, payload, SandboxApi.SandboxStatus)
  return (value: S["Type"]) => post(path, value)
}

const takeSnapshot = control("snapshotSandbox", Paths.sandboxSnapshots, Schema.Struct({}))

/**
 * Returns the seed, time, faults and snapshots of the sandbox.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Sandbox } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Sandbox.status(), ({ seed }) => Console.log(seed))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * trigate
 * ```
 */
export const status = readOwn("sandbox", () => Paths.sandbox, SandboxApi.SandboxStatus)

/**
 * Advances the venue's time immediately by a number of milliseconds.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Sandbox } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const before = yield* Sandbox.status()
 *   const { time } = yield* Sandbox.advance({ advance: 60_000 })
 *   yield* Console.log(time - before.time >= 60_000)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * true
 * ```
 */
export const advance = control("advanceSandbox", Paths.sandboxClock, SandboxApi.ClockAdvance)

/**
 * Sets the prices of a coin from now on. A single point sets a constant price.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Sandbox } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Sandbox.setPrices({ coin: "BTC", points: [{ time: 0, price: 60_000 }, { time: 60_000, price: 58_000 }] })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const setPrices = control("setSandboxPrices", Paths.sandboxPrices, SandboxApi.PriceChange)

/**
 * Sets the levels of a coin's book from now on, in place of the sandbox's own orders. `null` restores these.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Sandbox } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   yield* Sandbox.setBook({ coin: "SOL", book: { bids: [{ px: "100", sz: "2" }], asks: [] } })
 *   yield* Sandbox.setBook({ coin: "SOL", book: null })
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const setBook = control("setSandboxBook", Paths.sandboxBooks, SandboxApi.BookChange)

/**
 * Sets faults of the simulated venue. Faults that the change omits stay unchanged.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Sandbox } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { faults } = yield* Sandbox.setFaults({ lostReplies: 0.5 })
 *   yield* Console.log(faults.lostReplies)
 *   yield* Sandbox.setFaults({ lostReplies: 0 })
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 0.5
 * ```
 */
export const setFaults = control("setSandboxFaults", Paths.sandboxFaults, SandboxApi.FaultChange)

/**
 * Closes the gateway's WebSockets to the venue. The venue refuses new ones for a number of milliseconds.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Sandbox } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Sandbox.cutSockets({ downFor: 1000 })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const cutSockets = control("cutSandboxSockets", Paths.sandboxSockets, SandboxApi.SocketCut)

/**
 * Lets bots query the venue at the same time through a cache of their own. Returns the weight of their queries with and
 * without the gateway.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Sandbox } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(
 *   Sandbox.startBots({ bots: 100 }),
 *   ({ weight, weightWithout }) => Console.log(weightWithout, weight)
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 9200 92
 * ```
 */
export const startBots = (start: SandboxApi.BotStart) => postBots(Paths.sandboxBots, start)

/**
 * Sets the balance and positions of an account.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Sandbox } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Sandbox.endow({ user: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", usd: "10000" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const endow = control("endowSandboxAccount", Paths.sandboxAccounts, SandboxApi.Endowment)

/**
 * Takes a snapshot of the venue. The new snapshot's ID is the last one in the response.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Sandbox } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { snapshots } = yield* Sandbox.snapshot()
 *   const snapshot = snapshots.at(-1)
 *   if (snapshot !== undefined) yield* Sandbox.reset({ snapshot })
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const snapshot = () => takeSnapshot({})

/**
 * Restores the venue's initial state, or a snapshot.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Sandbox } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Sandbox.reset({})
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const reset = control("resetSandbox", Paths.resetSandbox, SandboxApi.SandboxReset)
