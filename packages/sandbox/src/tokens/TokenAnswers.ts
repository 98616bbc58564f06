/**
 * Serves the token chain's calls. If the data of the seeded contracts is not sufficient for a call, runs the contracts'
 * code.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import type { Seed } from "../Seed.ts"
import type * as TokenMachine from "./TokenMachine.ts"
import type { TokenAnswer, TokenState } from "./TokenServer.ts"
import * as TokenServer from "./TokenServer.ts"

/** Methods that the virtual machine serves also for a contract without code: balance and transactions. */
const ledger: ReadonlySet<TokenServer.Method> = new Set(["getAddressBalance", "getTransactions"])

/** Methods that run code, or return the results of code. */
const running: ReadonlySet<TokenServer.Method> = new Set([
  "getAddressInformation",
  "getTransactions",
  "runGetMethod",
  "runGetMethodStd"
])

/**
 * Methods that are served from the seeded contracts until the virtual machine has executed a message, and by the
 * virtual machine after that.
 */
const following: ReadonlySet<TokenServer.Method> = new Set(["getAddressBalance", "getAddressState", "getTokenData"])

/**
 * Makes the handlers of the token chain's methods over a state. The virtual machine is loaded with the first call that
 * needs it.
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
    const asked = TokenServer.parseAsked(view, params)
    if (Result.isFailure(asked)) return asked.failure
    if (TokenServer.isDescribed(asked.success.contract) && !ledger.has(method)) {
      return described()
    }
    const { machine: loaded, methods } = yield* machine
    const answer = methods.addressMethods[method] ?? methods.followingMethods[method]
    return answer === undefined ? described() : yield* answer(loaded, asked.success)
  }) satisfies (method: TokenServer.Method, params: unknown) => Effect.Effect<TokenAnswer>
})
