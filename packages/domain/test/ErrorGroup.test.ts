import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { ActionRejected } from "@trigate/domain/actions/ActionOutcome"
import type { ExchangeFailure } from "@trigate/domain/actions/ExchangeOperations"
import type { Grouped, GroupOf, InGroup } from "@trigate/domain/errors/ErrorGroup"
import { catchGroup, type ErrorGroup, errorGroups } from "@trigate/domain/errors/ErrorGroup"
import type { CommonFailure, GatewayError } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import { samples } from "./gatewayErrorSamples.ts"

/** Which errors are of which group. */
const table: { readonly [Group in ErrorGroup]: ReadonlyArray<GatewayError["_tag"]> } = {
  "retry-later": [
    "QuotaExceeded",
    "Overloaded",
    "ArchiveUnavailable",
    "UpstreamUnavailable",
    "UpstreamRateLimited",
    "UpstreamTimeout",
    "UpstreamMalformed"
  ],
  "fix-request": [
    "InvalidRequest",
    "UnsupportedAction",
    "UnsupportedMethod",
    "UnsupportedBlock",
    "LogRangeTooWide",
    "NonceOutOfWindow",
    "NonceMismatch",
    "InvalidSignature",
    "InvalidAddress",
    "TokenNotFound",
    "UnknownAsset",
    "HistoryUnavailable",
    "PayloadTooLarge",
    "CallReverted"
  ],
  "fix-setup": [
    "UnavailableOnNode",
    "ChainNotConfigured",
    "SignerNotAllowed",
    "Unauthorized",
    "NotPermitted",
    "ArchiveNotConfigured",
    "UpstreamForbidden"
  ],
  // a used nonce: an action under it was sent, or is being sent
  "outcome-unknown": ["NonceAlreadyUsed", "OutcomeUnknown"]
}

describe("the group of an error", () => {
  it("is declared by every class", () => {
    const grouped = Object.values<GatewayError>(samples)
    for (const group of Object.keys(errorGroups)) {
      assert.deepStrictEqual(
        grouped.filter((error) => error.group === group).map(({ _tag }) => _tag),
        Object.entries(table).flatMap(([name, tags]) => name === group ? tags : [])
      )
    }
    assert.strictEqual(new ActionRejected({ reason: "Refused", message: "no" }).group, "fix-request")
  })

  it("is no member of the error: it neither travels nor shows", () => {
    assert.notInclude(Object.keys(samples.UnknownAsset), "group")
    assert.notInclude(JSON.stringify(samples.UnknownAsset), "fix-request")
  })

  it("is known to the compiler", () => {
    expectTypeOf<InGroup<GatewayError, "outcome-unknown">["_tag"]>().toEqualTypeOf<
      "NonceAlreadyUsed" | "OutcomeUnknown"
    >()
    expectTypeOf<GroupOf<CommonFailure>>().toEqualTypeOf<"retry-later" | "fix-request" | "fix-setup">()
    expectTypeOf<GroupOf<GatewayError>>().toEqualTypeOf<ErrorGroup>()
    expectTypeOf<GroupOf<Error>>().toEqualTypeOf<never>()
  })
})

const failing = <E>(error: E): Effect.Effect<"done", E> => Effect.fail(error)

describe("catchGroup", () => {
  it.effect("handles the errors of its group", () =>
    Effect.gen(function*() {
      for (const tag of table["retry-later"]) {
        const handled = yield* failing<GatewayError>(samples[tag]).pipe(
          catchGroup("retry-later", ({ _tag }) => Effect.succeed(_tag))
        )
        assert.strictEqual(handled, tag)
      }
    }))

  it.effect("lets the errors of the other groups go on as they are, and what is no error of ours", () =>
    Effect.gen(function*() {
      const untouched = [...table["fix-request"], ...table["fix-setup"], ...table["outcome-unknown"]]
      for (const tag of untouched) {
        const error = yield* Effect.flip(
          catchGroup(failing<GatewayError>(samples[tag]), "retry-later", () => Effect.succeed("handled"))
        )
        assert.strictEqual<GatewayError>(error, samples[tag])
      }
      const own = new Error("mine")
      assert.strictEqual(
        yield* Effect.flip(
          catchGroup(failing<GatewayError | Error>(own), "fix-request", () => Effect.succeed("handled"))
        ),
        own
      )
    }))

  it("takes the group out of the type, and only a group that is in it compiles", () => {
    const spotMeta = failing<CommonFailure>(samples.UpstreamTimeout)
    const later = spotMeta.pipe(catchGroup("retry-later", (error) => {
      expectTypeOf(error).toEqualTypeOf<InGroup<CommonFailure, "retry-later">>()
      expectTypeOf(error._tag).toEqualTypeOf<
        "UpstreamUnavailable" | "UpstreamRateLimited" | "QuotaExceeded" | "UpstreamTimeout" | "UpstreamMalformed"
      >()
      return Effect.succeed(0)
    }))
    expectTypeOf<Effect.Error<typeof later>["_tag"]>().toEqualTypeOf<
      "InvalidRequest" | "UnsupportedMethod" | "UnavailableOnNode" | "ChainNotConfigured" | "UpstreamForbidden"
    >()
    expectTypeOf<Effect.Success<typeof later>>().toEqualTypeOf<"done" | number>()

    const wrong = [
      // @ts-expect-error -- a read has no unknown outcome
      spotMeta.pipe(catchGroup("outcome-unknown", () => Effect.succeed(0))),
      // @ts-expect-error -- this group was handled above
      catchGroup(later, "retry-later", () => Effect.succeed(0)),
      // @ts-expect-error -- no such group
      catchGroup(later, "try-again", () => Effect.succeed(0))
    ]
    assert.lengthOf(wrong, 3)

    // a handler of all errors of a group, whatever the effect
    const retryLater = (error: Grouped<"retry-later"> & Error) => Effect.fail(error.message)
    const shared = spotMeta.pipe(catchGroup("retry-later", retryLater))
    expectTypeOf<Effect.Error<typeof shared>>().toEqualTypeOf<string | Effect.Error<typeof later>>()

    const handled = failing<ExchangeFailure | ActionRejected>(samples.OutcomeUnknown).pipe(
      catchGroup("retry-later", () => Effect.succeed(1)),
      catchGroup("fix-request", () => Effect.succeed(2)),
      catchGroup("fix-setup", () => Effect.succeed(3)),
      catchGroup("outcome-unknown", () => Effect.succeed(4))
    )
    expectTypeOf<Effect.Error<typeof handled>>().toEqualTypeOf<never>()
    assert.strictEqual(Effect.runSync(handled), 4)
  })
})
