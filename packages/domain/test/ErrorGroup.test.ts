import { assert, describe, it } from "@effect/vitest"
import { ActionRejected } from "@trigate/domain/actions/ActionOutcome"
import type { GatewayError } from "@trigate/domain/errors/GatewayError"
import { errorGroups } from "@trigate/domain/errors/Problem"
import type { ErrorGroup } from "@trigate/domain/errors/Problem"
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
    "PolicyViolation",
    "ActionNotFound",
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
})
