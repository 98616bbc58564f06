/**
 * Serves the token chain's calls from the initial data of its contracts. If this data is not sufficient for a call,
 * runs the contracts' code in the virtual machine.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import type { Seed } from "../Seed.ts"
import type * as TokenMachine from "./TokenMachine.ts"
import type { TokenAnswer } from "./TokenServer.ts"
import * as TokenServer from "./TokenServer.ts"
import type { TokenState } from "./TokenState.ts"
import { isDescribed } from "./TokenState.ts"

/**
 * Methods about balance and transactions. The virtual machine serves them for all contracts, even those without code.
 */
const ledger: ReadonlySet<TokenServer.Method> = new Set(["getAddressBalance", "getTransactions"])

/** Methods that always need the virtual machine, because they run a contract's code or return its results. */
const running: ReadonlySet<TokenServer.Method> = new Set([
  "getAddressInformation",
  "getTransactions",
  "runGetMethod",
  "runGetMethodStd"
])

/**
 * Methods that are served from the contracts' initial data until the virtual machine is loaded. After that, the virtual
 * machine serves them.
 */
const following: ReadonlySet<TokenServer.Method> = new Set(["getAddressBalance", "getAddressState", "getTokenData"])

/**
 * Makes the function that serves the token chain's methods. The virtual machine is loaded when the first call needs it.
 */
export const make = Effect.fnUntraced(function*(seed: Seed, state: Ref.Ref<TokenState>) {
  const isLoaded = yield* Ref.make(false)
  const machine = yield* Effect.cached(Effect.gen(function*() {
    const [{ make: makeMachine }, methods] = yield* Effect.promise(() =>
      Promise.all([import("./TokenMachine.ts"), import("./TokenMethods.ts")])
    )
    const made: TokenMachine.TokenMachine = yield* makeMachine(state)
    yield* Ref.set(isLoaded, true)
    return { machine: made, methods }
  }))

  return Effect.fnUntraced(function*(method: TokenServer.Method, params: unknown) {
    const view = TokenServer.makeView(seed, yield* Ref.get(state), yield* Clock.currentTimeMillis)
    const described = () => TokenServer.answer(view, method, params)
    if (method.startsWith("sendBoc")) {
      const { machine: loaded, methods } = yield* machine
      return yield* methods.send(loaded, view, method, params)
    }
    const needsCode = running.has(method)
    if (!needsCode && !(following.has(method) && (yield* Ref.get(isLoaded)))) return described()
    const asked = TokenServer.parseAsked(view, method, params)
    if (Result.isFailure(asked)) return asked.failure
    if (isDescribed(asked.success.contract) && !ledger.has(method)) {
      return described()
    }
    const { machine: loaded, methods } = yield* machine
    const answer = methods.addressMethods[method] ?? methods.followingMethods[method]
    return answer === undefined ? described() : yield* answer(loaded, asked.success)
  }) satisfies (method: TokenServer.Method, params: unknown) => Effect.Effect<TokenAnswer>
})

/** Serves the token chain's methods. */
export type Answering = Effect.Success<ReturnType<typeof make>>
