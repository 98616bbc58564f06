/** The venue's `POST /exchange`: decodes a signed action, executes it, and responds with the venue's texts. */
import { MultiSig } from "@trigate/domain/actions/Action"
import type { SentAction } from "@trigate/domain/actions/ActionCatalog"
import { SignedEnvelope } from "@trigate/domain/actions/SignedAction"
import { type Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import * as UserSigned from "@trigate/signing/actions/UserSigned"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as StrictDecoder from "../internal/StrictDecoder.ts"
import type { ActionSigner, Decision, Submission } from "./ActionAdmission.ts"
import { admit, refuseIf } from "./ActionAdmission.ts"
import type { ActionContext, ActionDecision, ActionResponse } from "./ActionContext.ts"
import * as Actions from "./Actions.ts"
import type { TradingControls } from "./TradingControls.ts"
import type { Venue } from "./Venue.ts"
import { nextHash } from "./Venue.ts"
import { notJson } from "./VenueAnswer.ts"
import type { InfoControls } from "./VenueInfo.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import type { VenueControls } from "./VenueState.ts"
import { accountOrNew, type VenueState } from "./VenueState.ts"

/**
 * Checks the network and the nonce of an action. These checks do not need the venue's state. The action's nonce must
 * equal the nonce of the request body.
 */
const checkAction = (profile: VenueProfile, action: SentAction, nonce: number): Decision<void> => {
  const type = UserSigned.find(action.type)
  if (type === undefined) return Result.succeed(undefined)
  if (action[profile.chainField] !== profile.chainName) return Result.fail(VenueRefusal.wrongNetwork)
  const field = UserSigned.nonceField(type)
  return refuseIf(field !== undefined && action[field.name] !== nonce, VenueRefusal.nonceMismatch)
}

/**
 * Executes a submission; `sentAt` is the time at which the submission was sent, according to the machine's clock.
 *
 * A refusal before the nonce check changes nothing. After that check, the nonce counts as used, even if the action is
 * refused later. A multi-sig wrapper uses a nonce of the leader who signed it.
 */
const decide = (
  state: VenueState,
  venue: Venue,
  submission: Submission,
  sentAt: number
): readonly [decision: ActionDecision, next: VenueState] => {
  const { envelope, executable, signed } = submission
  const admitted = admit(state, venue, submission, sentAt)
  if (Result.isFailure(admitted)) return [Result.fail(admitted.failure), state]
  const { next, user } = admitted.success
  if (signed.scheme !== "multiSig" && accountOrNew(next, user).multiSig !== undefined) {
    return [Result.fail(VenueRefusal.multiSigRequired), next]
  }
  const context: ActionContext = { venue, identity: next, user, nonce: envelope.nonce, sentAt }
  venue.hash = nextHash(venue)
  const decision = executable(context)
  return [decision, context.identity]
}

const upstream = "trading-api"

const decodeEnvelope = Schema.decodeUnknownOption(SignedEnvelope)
const decodeMultiSig = StrictDecoder.make(MultiSig)

const accepted = (response: ActionResponse): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.jsonValue(upstream, 200, { status: "ok", response })

const refused = (text: string): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.jsonValue(upstream, 200, { status: "err", response: text })

/** The types of actions that the sandbox supports. */
export const playedTypes: ReadonlySet<string> = new Set(["multiSig", ...Actions.playedTypes])

/** Returns the venue's response to a body that it cannot decode; `why` is appended to its text. */
const wrongShape = (why = ""): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.plain(upstream, 422, VenueRefusal.wrongShape + why)

/** Decodes the multi-sig wrapper (if any) and the action to execute, or returns why the sandbox refuses them. */
const readEnvelope = (envelope: SignedEnvelope): Result.Result<Omit<Submission, "signed">, string> => {
  const read = (action: SentAction, wrapper: typeof MultiSig.Type | undefined) =>
    Result.map(Actions.read(action.type, action), (executable) => ({ envelope, wrapper, action, executable }))
  return envelope.action.type === "multiSig"
    ? Result.flatMap(
      Result.mapError(decodeMultiSig(envelope.action), (unread) => StrictDecoder.formatUnread(unread, "multiSig")),
      (wrapper) => read(wrapper.payload.action, wrapper)
    )
    : read(envelope.action, undefined)
}

/** The state that actions read and change. */
export interface ExchangeState {
  readonly venue: VenueControls
  readonly info: InfoControls
  readonly trading: TradingControls
}

type Unrecovered = Result.Result.Failure<ReturnType<typeof SignerRecovery.recoverRequest>>

/** The time, in milliseconds, and the engine that recovers signers. */
interface Surroundings {
  readonly clock: number
  readonly engine: Secp256k1.Engine
}

const answerTo = (
  profile: VenueProfile,
  { info, trading, venue: controls }: ExchangeState,
  request: Omit<Submission, "signed">,
  signer: Address | undefined,
  // callers choose nonces and expiry times by the machine's clock, so this clock is used even if the venue's time is
  // ahead
  { clock: sentAt, engine }: Surroundings
): UpstreamResponse.UpstreamResponse => {
  const { action, envelope, wrapper } = request
  const checked = checkAction(profile, action, envelope.nonce)
  if (Result.isFailure(checked)) return refused(checked.failure)
  const recovered: Result.Result<ActionSigner, Unrecovered> = signer === undefined || wrapper !== undefined
    ? SignerRecovery.recoverRequest(profile, envelope, engine)
    : Result.map(UserSigned.signingScheme(action), ({ scheme }) => ({ scheme, signer }))
  if (Result.isFailure(recovered)) {
    const { failure } = recovered
    if (failure._tag !== "UnrecoverableSignature" || wrapper === undefined) return wrongShape()
    return refused(
      failure.innerIndex === undefined ? VenueRefusal.invalidOuterSigner : VenueRefusal.invalidInnerSigner
    )
  }
  const venue = trading.at(Ref.getUnsafe(info.state), trading.nowAt(sentAt))
  const [decision, next] = decide(
    Ref.getUnsafe(controls.state),
    venue,
    { ...request, signed: recovered.success },
    sentAt
  )
  MutableRef.set(controls.state.ref, next)
  trading.deliver()
  return Result.match(decision, { onFailure: refused, onSuccess: accepted })
}

/**
 * A request body whose signer the caller of this module has already recovered, because recovery is the slowest step.
 */
export interface Recovered {
  readonly signed: SignedEnvelope
  /** The recovered signer; `undefined` if the signer cannot be recovered. */
  readonly signer: Address | undefined
}

/**
 * Returns whether the venue would decode the envelope exactly as the gateway did. Returns `false` for actions signed as
 * typed data, because the gateway renames a field in them, and for multi-sig actions, because their co-signers are
 * recovered from the body.
 */
const isAsSent = ({ signed: { action: { type } }, signer }: Recovered): boolean =>
  signer !== undefined && type !== "multiSig" && UserSigned.find(type) === undefined

/**
 * Handles request bodies as the real venue does: one at a time, on behalf of the recovered signer.
 *
 * The caller can pass a decoded body with its recovered signer; this function always recovers the co-signers. For
 * unknown action types, and for forms that appear only in the venue's documentation, the response is HTTP 422. If the
 * venue refuses the action, the response is HTTP 200 with `status: "err"`.
 */
export const submit = (
  profile: VenueProfile,
  state: ExchangeState,
  body: Uint8Array,
  recovered?: Recovered
): Effect.Effect<UpstreamResponse.UpstreamResponse> =>
  Effect.contextWith((context) => {
    const surroundings = {
      clock: Context.get(context, Clock.Clock).currentTimeMillisUnsafe(),
      engine: Context.get(context, Secp256k1.Secp256k1)
    }
    const handle = (envelope: SignedEnvelope) =>
      Result.match(readEnvelope(envelope), {
        onFailure: wrongShape,
        onSuccess: (request) => answerTo(profile, state, request, recovered?.signer, surroundings)
      })
    if (recovered !== undefined && isAsSent(recovered)) return Exit.succeed(handle(recovered.signed))
    const parsed = Option.flatMap(Utf8.decode(body), (text) => Result.getSuccess(Json.parse(text)))
    return Exit.succeed(Option.match(parsed, {
      onNone: () => notJson,
      onSome: (sent) => Option.match(decodeEnvelope(sent), { onNone: () => wrongShape(), onSome: handle })
    }))
  })
