import { assert, describe, it } from "@effect/vitest"
import { background } from "@trigate/domain/Caller"
import * as Sessions from "@trigate/server/unstable/streams/Sessions"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

describe("the open sockets of a caller", () => {
  it.effect("count from the beginning of their opening, however long it waits", () =>
    Effect.gen(function*() {
      const use = Sessions.makeUse({ sockets: 2, bytesIn: 1, bytesOut: 1 })
      const caller = background("caller")
      const opened = yield* Deferred.make<void>()
      const opening = Effect.andThen(Deferred.await(opened), Effect.sync(() => void use.open(caller)))
      const first = yield* Effect.forkChild(use.admit(caller, opening), { startImmediately: true })
      const second = yield* Effect.forkChild(use.admit(caller, opening), { startImmediately: true })
      const refused = Effect.flip(use.admit(caller, Effect.void))
      assert.strictEqual((yield* refused)._tag, "QuotaExceeded")
      yield* use.admit(background("other"), Effect.void)
      // an opening that is abandoned counts no longer
      yield* Fiber.interrupt(first)
      yield* use.admit(caller, Effect.void)
      yield* Deferred.succeed(opened, undefined)
      yield* Fiber.join(second)
      yield* use.admit(caller, Effect.sync(() => void use.open(caller)))
      yield* refused
      use.close(caller)
      yield* use.admit(caller, Effect.void)
    }))
})
