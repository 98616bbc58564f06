/**
 * Decodes a signed body. Converts the body's action to the form that the venue accepts, and warns about members that
 * the venue would refuse.
 *
 * A union schema reports the errors of all its alternatives. To report only the errors of the alternative that the
 * sender meant, the decoder first selects the alternative by a JSON field that only that alternative has.
 */
import type { Action, DecodedActionType } from "@trigate/domain/actions/Action"
import {
  CSignerActionDocumented,
  documentedFormAdvice,
  EvmUserModify,
  EvmUserModifyDocumented,
  formKeys,
  hasDocumentedForm,
  isDecodedActionType,
  JailSelf,
  MultiSig,
  TokenDelegate,
  TokenDelegateDocumented,
  UnjailSelf
} from "@trigate/domain/actions/Action"
import { innerAction, isActionType, isSentAction, notKnown } from "@trigate/domain/actions/ActionCatalog"
import { SignedEnvelope } from "@trigate/domain/actions/SignedAction"
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import type { InvalidRequest, RequestFault } from "@trigate/domain/errors/RequestError"
import { decodeFaults, invalidRequest } from "@trigate/domain/operations/Operation"
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import type { UnsignableAction } from "@trigate/signing/actions/ActionHash"
import * as ActionOrder from "@trigate/signing/actions/ActionOrder"
import * as CanonicalAction from "@trigate/signing/actions/CanonicalAction"
import * as SigningWarning from "@trigate/signing/inspection/SigningWarning"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { documentedChainField } from "@trigate/signing/VenueProfile"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** A decoded value, or all decoding errors with their paths in the body. */
export type DecodeResult<A> = Result.Result<A, ReadonlyArray<RequestFault>>

/** A decoded body. */
export interface ReadBody {
  /** The body. Its action contains every member that was sent, with `type` first. */
  readonly signed: SignedEnvelope
  /** The action as parsed, with its members in the sender's order. */
  readonly sentAction: unknown
  /** The decoded action; absent for an action type of which the gateway decodes only the envelope. */
  readonly action: Action | undefined
}

const reader = <S extends AnyCodec>(schema: S, prefix: ReadonlyArray<string>) => {
  const decode = Schema.decodeUnknownResult(schema)
  const decodeAgain = Schema.decodeUnknownResult(schema, { errors: "all" })
  return (value: unknown): DecodeResult<S["Type"]> => {
    // collecting all errors makes decoding several times slower, and nearly every body has none
    const read = decode(value)
    return Result.isSuccess(read)
      ? Result.succeed(read.success)
      : Result.mapError(decodeAgain(value), (error) => decodeFaults(error, prefix))
  }
}

const inAction = <S extends AnyCodec>(schema: S) => reader(schema, ["action"])

const { action: _action, ...besideAction } = SignedEnvelope.fields

const readBesideAction = reader(Schema.Struct(besideAction), [])

const readEnvelope = reader(SignedEnvelope, [])

const readMultiSig = inAction(MultiSig)

type Reader = (value: unknown) => DecodeResult<Action>

const readers: { readonly [Type in keyof typeof formKeys]: { readonly [key: string]: Reader } } = {
  tokenDelegate: { wei: inAction(TokenDelegate), amount: inAction(TokenDelegateDocumented) },
  CSignerAction: {
    unjailSelf: inAction(UnjailSelf),
    jailSelf: inAction(JailSelf),
    payload: inAction(CSignerActionDocumented)
  },
  evmUserModify: { usingBigBlocks: inAction(EvmUserModify), modifications: inAction(EvmUserModifyDocumented) }
}

const refused = (message: string) => Result.fail([{ path: ["action"], message }])

const quoted = (keys: ReadonlyArray<string>): string => keys.map((key) => `\`${key}\``).join(" or ")

const readAction = (type: DecodedActionType, action: object): DecodeResult<Action> => {
  if (type === "multiSig") {
    // a schema puts `type` first, but in the signed bytes the members have the sender's order
    const sent = isSentAction(action) ? innerAction(action) : undefined
    return Result.map(
      readMultiSig(action),
      (read) => sent === undefined ? read : { ...read, payload: { ...read.payload, action: sent } }
    )
  }
  const { documented, real } = formKeys[type]
  const given = real.filter((key) => key in action)
  if (given.length > 1) return refused(`Expected only one of ${quoted(real)}`)
  const key = given[0] ?? (documented in action ? documented : real.length === 1 ? real[0] : undefined)
  const read = key === undefined ? undefined : readers[type][key]
  return read === undefined ? refused(`Expected a member ${quoted(real)}`) : read(action)
}

const faultsIn = <A>(read: DecodeResult<A>) => Result.isFailure(read) ? read.failure : []

/**
 * Returns the members of a body that are outside the signed action. They are not signed, and the venue ignores them.
 */
const unsignedMembers = (body: unknown): ReadonlyArray<RequestFault> =>
  Predicate.isReadonlyObject(body)
    ? Object.keys(body).filter((key) => !Object.hasOwn(SignedEnvelope.fields, key)).map((key) => ({
      path: [key],
      message: "Not a member of a signed action"
    }))
    : []

const readMembers = (body: unknown): DecodeResult<ReadBody> => {
  const sentAction = Predicate.hasProperty(body, "action") ? body.action : undefined
  const { type, ...members } = Predicate.isReadonlyObject(sentAction) ? sentAction : {}
  if (!Predicate.isReadonlyObject(sentAction) || !Predicate.isString(type) || !isDecodedActionType(type)) {
    return Result.map(readEnvelope(body), (signed) => ({ signed, sentAction, action: undefined }))
  }
  const action = readAction(type, sentAction)
  const beside = readBesideAction(body)
  return Result.isSuccess(action) && Result.isSuccess(beside)
    ? Result.succeed({
      signed: { ...beside.success, action: { type, ...members } },
      sentAction,
      action: action.success
    })
    : Result.fail([...faultsIn(action), ...faultsIn(beside)])
}

/** Decodes a parsed body of any action type. Fails with all decoding errors of the body, not only the first. */
export const read = (body: unknown): DecodeResult<ReadBody> => {
  const read = readMembers(body)
  const unsigned = unsignedMembers(body)
  return unsigned.length === 0 ? read : Result.fail([...faultsIn(read), ...unsigned])
}

/** Decodes the text of a body. Fails with `InvalidRequest` if the body is not UTF-8. */
export const decodeText = (body: Uint8Array): Result.Result<string, InvalidRequest> =>
  Result.fromOption(Utf8.decode(body), () => invalidRequest([{ path: [], message: "Not valid UTF-8" }]))

/** Like {@link read}, for the text of a body, which must be strict JSON. Fails with `InvalidRequest`. */
export const readText = (text: string): Result.Result<ReadBody, InvalidRequest> =>
  Result.flatMap(
    Result.mapError(Json.parseStrict(text), (refusal) => invalidRequest([refusal])),
    (parsed) => Result.mapError(read(parsed), invalidRequest)
  )

/** Returns the action of a body in the venue's form, without decoding it again. Fails with `UnsignableAction`. */
export const canonicalAction = (
  profile: VenueProfile,
  { action, sentAction }: ReadBody
): Result.Result<CanonicalAction.CanonicalAction, UnsignableAction> =>
  action?.type === "multiSig"
    ? CanonicalAction.canonicalizeMultiSig(profile, action)
    // the members of an unknown type are hashed in the sender's order
    : CanonicalAction.canonicalize(profile, sentAction)

/**
 * Generates other forms in which the action of a body can have been hashed, if its type or members are unknown. See
 * `CanonicalAction.otherForms`.
 */
export const otherForms = (
  profile: VenueProfile,
  canonical: CanonicalAction.CanonicalAction,
  { action, sentAction }: ReadBody
): Iterable<CanonicalAction.CanonicalAction> => {
  const sent = action?.type === "multiSig" ? action.payload.action : sentAction
  return Predicate.isReadonlyObject(sent) ? CanonicalAction.otherForms(profile, canonical, sent) : []
}

/** The paths of actions in a body: the action itself, and the action inside a multi-sig. */
const actionPaths = [["action"], ["action", "payload", "action"]] as const

const membersAt = (text: string, path: ReadonlyArray<string>): ReadonlyMap<string, Json.Span> => {
  let found = Json.members(text)
  for (const key of path) {
    const span = found.get(key)
    if (span === undefined) return new Map()
    found = Json.members(text, span.start)
  }
  return found
}

/**
 * Renames the key `venueChain` in every action to the profile's name for this key. Changes nothing else.
 *
 * Refuses an action with both names, because the result would have a duplicate key.
 */
export const respellChainField = (profile: VenueProfile, text: string): Result.Result<string, RequestFault> => {
  if (!text.includes(documentedChainField) && !text.includes("\\")) return Result.succeed(text)
  const spans: Array<Json.Span> = []
  for (const path of actionPaths) {
    const members = membersAt(text, path)
    const span = members.get(documentedChainField)
    if (span === undefined) continue
    if (members.has(profile.chainField)) {
      return Result.fail({
        path: [...path, documentedChainField],
        message: `Expected only one of ${profile.chainField} and ${documentedChainField}`
      })
    }
    spans.push(span)
  }
  let respelled = ""
  let from = 0
  for (const { keyEnd, keyStart } of spans.toSorted((a, b) => a.keyStart - b.keyStart)) {
    respelled += `${text.slice(from, keyStart)}${JSON.stringify(profile.chainField)}`
    from = keyEnd
  }
  return Result.succeed(respelled + text.slice(from))
}

/** An action in a body, with its path. */
export interface Placed {
  readonly path: ReadonlyArray<string>
  readonly action: SignedEnvelope["action"]
}

const [outer, inner] = actionPaths

/** Returns the action of a body and, if that is a multi-sig action, its inner action. */
export const actionsIn = ({ action, signed }: ReadBody): ReadonlyArray<Placed> => [
  { path: outer, action: signed.action },
  ...(action?.type === "multiSig" ? [{ path: inner, action: action.payload.action }] : [])
]

/**
 * Finds the action forms in a body that the venue documents but does not accept. For each, returns its path and the
 * form that the venue accepts instead.
 */
export const documentedForms = (body: ReadBody): ReadonlyArray<RequestFault> =>
  actionsIn(body).flatMap(({ action, path }) => {
    const message = documentedFormAdvice(action)
    return message === undefined || !hasDocumentedForm(action.type)
      ? []
      : [{ path: [...path, formKeys[action.type].documented], message }]
  })

const otherNetwork = (profile: VenueProfile, { action }: Placed): ReadonlyArray<string> => {
  const chain = action[profile.chainField] ?? action[documentedChainField]
  return Predicate.isString(chain) && chain !== profile.chainName
    ? [`${action.type} is for another network: this gateway sends to ${profile.chainName}`]
    : []
}

/** Returns warnings in the order of the body. They are ASCII without line breaks, so that they fit into a header. */
export const warnings = (profile: VenueProfile, body: ReadBody, now: number): ReadonlyArray<string> => {
  const actions = actionsIn(body)
  const { expiresAfter } = body.signed
  return [
    ...documentedForms(body).map(({ message }) => message),
    ...actions.flatMap((action) => otherNetwork(profile, action)),
    ...(actions[1]?.action.type === "evmUserModify"
      ? ["The original key keeps control of a multi-sig user's EVM account: do not use that EVM account"]
      : []),
    ...(Predicate.isNumber(expiresAfter) && expiresAfter <= now
      ? ["expiresAfter has passed: the venue refuses the action and charges the address's rate limit several times"]
      : [])
  ]
}

/** Maximum number of unknown parts that are described. */
const maxUnknown = 4

/** Describes the type, the members and the words of an L1 action that the catalog lacks, one clause of ASCII each. */
export const describeUnknown = (
  { action, path }: Placed,
  isMeant: (part: ActionOrder.UnknownPart) => boolean
): ReadonlyArray<string> => {
  const type = String(action["type"])
  const order = ActionOrder.l1(type)
  // a warning reports a form that the venue documents but does not accept
  if (documentedFormAdvice({ ...action, type }) !== undefined) return []
  if (order !== undefined) {
    return ActionOrder.findUnknown(order, action, path).filter(isMeant).slice(0, maxUnknown).map(({ kind, path }) =>
      `${kind === "word" ? "the word at " : ""}${SigningWarning.pathText(path)} ${notKnown}`
    )
  }
  return isActionType(type) || "signatureChainId" in action || !isMeant({ kind: "word", path: [...path, "type"] })
    ? []
    : [`the action type ${SigningWarning.printable(JSON.stringify(type.slice(0, 64)))} ${notKnown}`]
}

/** Describes the types and the members in the actions of a body that the catalog lacks, one clause of ASCII each. */
export const unknownMembers = (body: ReadBody): ReadonlyArray<string> =>
  actionsIn(body).flatMap((placed) => {
    const order = ActionOrder.l1(placed.action["type"])
    return order !== undefined && ActionOrder.isKnown(order, placed.action)
      ? []
      : describeUnknown(placed, ({ kind, path }) => kind === "member" || path.at(-1) === "type")
  })
