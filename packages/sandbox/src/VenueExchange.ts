/** The venue's `POST /exchange`: bytes in, the answer that the real venue gives out. */
import * as JsonText from "@trigate/domain/JsonText"
import { SignedEnvelope } from "@trigate/domain/SignedAction"
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Utf8 from "@trigate/domain/Utf8"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { SingleAction, VenueAction } from "./VenueAction.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import type { VenueState } from "./VenueState.ts"
import * as VenueSubmission from "./VenueSubmission.ts"

const upstream = "trading-api"

const decodeEnvelope = Schema.decodeUnknownOption(SignedEnvelope)
const decodeAction = Schema.decodeUnknownOption(VenueAction)
const decodeInner = Schema.decodeUnknownOption(SingleAction)

const accepted = UpstreamResponse.json(upstream, 200, "{\"status\":\"ok\",\"response\":{\"type\":\"default\"}}")

const refused = (text: string): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.json(upstream, 200, JSON.stringify({ status: "err", response: text }))

const wrongShape = UpstreamResponse.plain(upstream, 422, VenueRefusal.wrongShape)

const notJson = UpstreamResponse.plain(upstream, 400, VenueRefusal.notJson)

/** The envelope, the action and the action to execute; nothing when the venue could not parse it. */
const read = (body: unknown) =>
  Option.gen(function*() {
    const envelope = yield* decodeEnvelope(body)
    const action = yield* decodeAction(envelope.action)
    const inner = yield* (action.type === "multiSig" ? decodeInner(action.payload.action) : Option.some(action))
    return { envelope, action, inner }
  })

const answerTo = Effect.fnUntraced(function*(
  profile: VenueProfile,
  venue: Ref.Ref<VenueState>,
  { action, envelope, inner }: Option.Option.Value<ReturnType<typeof read>>
) {
  const checked = VenueSubmission.checkAction(profile, inner, envelope.nonce)
  if (Result.isFailure(checked)) return refused(checked.failure)
  const recovered = yield* Effect.result(SignerRecovery.recover(profile, envelope))
  if (Result.isFailure(recovered)) {
    const { failure } = recovered
    if (failure._tag !== "UnrecoverableSignature" || action.type !== "multiSig") return wrongShape
    return refused(
      failure.innerIndex === undefined ? VenueRefusal.invalidOuterSigner : VenueRefusal.invalidInnerSigner
    )
  }
  const now = yield* Clock.currentTimeMillis
  const submission = { envelope, action, signed: recovered.success }
  const refusal = yield* Ref.modify(venue, (state) => VenueSubmission.decide(state, submission, inner, now))
  return refusal === undefined ? accepted : refused(refusal)
})

/**
 * Takes a body as the real venue does: by the signer that its signature recovers to, one after the other.
 *
 * Action forms that only the documents show, and action types that this venue does not have, are HTTP 422; a refusal is
 * HTTP 200 with `status: "err"`.
 */
export const submit = (
  profile: VenueProfile,
  venue: Ref.Ref<VenueState>,
  body: Uint8Array
): Effect.Effect<UpstreamResponse.UpstreamResponse> => {
  const parsed = Option.flatMap(Utf8.decode(body), (text) => Result.getSuccess(JsonText.parse(text)))
  if (Option.isNone(parsed)) return Effect.succeed(notJson)
  return Option.match(read(parsed.value), {
    onNone: () => Effect.succeed(wrongShape),
    onSome: (request) => answerTo(profile, venue, request)
  })
}
