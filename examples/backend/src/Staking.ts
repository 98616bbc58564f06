/** Signs a delegation, submits it, and finds out what became of it. */
import type { SignedAction } from "@trigate/domain/actions/Action"
import type { Address } from "@trigate/domain/encoding/Encoding"
import type { Grouped } from "@trigate/domain/errors/Problem"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Hype from "@trigate/signing/Decimal"
import { NonceSource } from "@trigate/signing/NonceSource"
import { Signer } from "@trigate/signing/Signer"
import { Venue } from "@trigate/signing/VenueProfile"
import { Exchange } from "@trigate/trading/Exchange"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"

const isPassing = ({ group }: Grouped): boolean => group === "retry-later" || group === "outcome-unknown"

const make = Effect.gen(function*() {
  const exchange = yield* Exchange
  const nonces = yield* NonceSource
  const signer = yield* Signer
  const venue = yield* Venue

  /** Sends the identical bytes until the venue says what became of the first ones. It never signs anew. */
  const settle = Effect.fn("Staking.settle")(function*(signed: SignedAction) {
    const resolution = yield* exchange.resolve(signed).pipe(
      Effect.retry({ schedule: Schedule.spaced("5 seconds"), times: 5, while: ({ reason }) => isPassing(reason) })
    )
    yield* Effect.annotateCurrentSpan({ resolution: resolution._tag })
    if (resolution._tag === "Rejected") return yield* resolution.rejection
  })

  /** Delegates an amount of HYPE and returns the nonce that the venue took. */
  const delegate = Effect.fn("Staking.delegate")(function*(validator: Address, hype: string) {
    const wei = yield* Effect.fromResult(Hype.weiFromHype(hype))
    const nonce = yield* nonces.next(signer.address)
    const signed = yield* ActionBuilder.delegate({ validator, wei, nonce }).pipe(
      Effect.provideService(Signer, signer),
      Effect.provideService(Venue, venue)
    )
    yield* exchange.submit(signed).pipe(Effect.catchTag("OutcomeUnknown", () => settle(signed)))
    return nonce
  })

  return { delegate }
})

export class Staking extends Context.Service<Staking, Effect.Success<typeof make>>()("backend/Staking") {
  static readonly layer = Layer.effect(Staking, make)
}
