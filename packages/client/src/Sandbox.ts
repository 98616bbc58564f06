/** The clock, prices, faults and accounts of a sandbox, for the operator: the connection is to its admin listener. */
import * as Paths from "@trigate/api/Paths"
import { ClockAdvance, Endowment, FaultChange, PriceChange, SandboxReset, SandboxStatus } from "@trigate/api/SandboxApi"
import { type CallFailure, wrapReason } from "@trigate/domain/errors/GatewayError"
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import { encodeRequest } from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import type { Connection } from "./Connection.ts"
import { ask, ownReaderOf } from "./internal/Served.ts"

const read = ownReaderOf(SandboxStatus)

type Controlled = Effect.Effect<SandboxStatus, CallFailure, Connection>

/** A control: posts its payload, and reads what the sandbox is then like. */
const control = <S extends AnyCodec>(name: string, path: string, payload: S) => {
  const write = encodeRequest(payload)
  const call: (value: S["Type"]) => Controlled = Effect.fn(`GatewayClient.${name}`)(function*(value) {
    const { text } = yield* Effect.mapError(write(value), wrapReason)
    return yield* read(yield* ask(({ own }) => own.post(path, text)))
  })
  return call
}

/** Returns the seed, time, faults and snapshots of the sandbox. */
export const status: () => Controlled = Effect.fn("GatewayClient.sandbox")(function*() {
  return yield* read(yield* ask(({ own }) => own.get(Paths.sandbox)))
})

/** Lets milliseconds pass for the venue at once. */
export const advance = control("advanceSandbox", Paths.sandboxClock, ClockAdvance)

/** Sets the prices of a coin from now on. One point sets the price. */
export const setPrices = control("setSandboxPrices", Paths.sandboxPrices, PriceChange)

/** Sets faults of the venue. Those that are absent stay. */
export const setFaults = control("setSandboxFaults", Paths.sandboxFaults, FaultChange)

/** Gives an account money and positions. */
export const endow = control("endowSandboxAccount", Paths.sandboxAccounts, Endowment)

/** Takes a snapshot of the venue, whose ID is the last one of the answer. */
export const snapshot: () => Controlled = Effect.fn("GatewayClient.snapshotSandbox")(function*() {
  return yield* read(yield* ask(({ own }) => own.post(Paths.sandboxSnapshots, "{}")))
})

/** Puts the venue back into its first state, or that of a snapshot. */
export const reset = control("resetSandbox", Paths.resetSandbox, SandboxReset)
