/**
 * Decodes a signed body: extracts it from the wrappers of other programs, converts its action to the form that the
 * venue accepts, and finds the mistakes that do not depend on the signer.
 *
 * A union schema reports the errors of all its alternatives. To report only the errors of the alternative that the
 * sender meant, the decoder first selects the alternative by a JSON field that only that alternative has.
 */
import * as Action from "@trigate/domain/actions/Action"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type { InvalidRequest, RequestFault } from "@trigate/domain/errors/GatewayError"
import { type AnyCodec, decodeFaults, invalidRequest } from "@trigate/domain/operations/Operation"
import type { Mistake } from "@trigate/domain/unstable/Inspection"
import * as ActionForm from "@trigate/signing/unstable/actions/ActionForm"
import type { UnsignableAction } from "@trigate/signing/unstable/actions/ActionHash"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import * as SigningWarning from "@trigate/signing/unstable/inspection/SigningMistake"
import { documentedChainField, type VenueProfile } from "@trigate/signing/VenueProfile"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** A decoded value, or all decoding errors with their paths in the body. */
export type DecodeResult<A> = Result.Result<A, ReadonlyArray<RequestFault>>

/** A decoded body. */
export interface ReadBody {
  /** The body. Its action contains every member that was sent, with `type` first. */
  readonly signed: Action.SignedEnvelope
  /** The action as parsed, with its members in the sender's order. */
  readonly sentAction: unknown
  /** The decoded action; absent for an action type of which the gateway decodes only the envelope. */
  readonly action: Action.Action | undefined
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

const { action: _action, ...besideAction } = Action.SignedEnvelope.fields

const readBesideAction = reader(Schema.Struct(besideAction), [])

const readEnvelope = reader(Action.SignedEnvelope, [])

const readMultiSig = inAction(Action.MultiSig)

type Reader = (value: unknown) => DecodeResult<Action.Action>

const readers: { readonly [Type in keyof typeof Action.formKeys]: { readonly [key: string]: Reader } } = {
  tokenDelegate: { wei: inAction(Action.TokenDelegate), amount: inAction(Action.TokenDelegateDocumented) },
  CSignerAction: {
    unjailSelf: inAction(Action.UnjailSelf),
    jailSelf: inAction(Action.JailSelf),
    payload: inAction(Action.CSignerActionDocumented)
  },
  evmUserModify: {
    usingBigBlocks: inAction(Action.EvmUserModify),
    modifications: inAction(Action.EvmUserModifyDocumented)
  }
}

const refused = (message: string) => Result.fail([{ path: ["action"], message }])

const quoted = (keys: ReadonlyArray<string>): string => keys.map((key) => `\`${key}\``).join(" or ")

const readAction = (type: Action.DecodedActionType, action: object): DecodeResult<Action.Action> => {
  if (type === "multiSig") {
    // a schema puts `type` first, but in the signed bytes the members have the sender's order
    const sent = Action.isSentAction(action) ? Action.innerAction(action) : undefined
    return Result.map(
      readMultiSig(action),
      (read) => sent === undefined ? read : { ...read, payload: { ...read.payload, action: sent } }
    )
  }
  const { documented, real } = Action.formKeys[type]
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
    ? Object.keys(body).filter((key) => !Object.hasOwn(Action.SignedEnvelope.fields, key)).map((key) => ({
      path: [key],
      message: "Not a member of a signed action"
    }))
    : []

const readMembers = (body: unknown): DecodeResult<ReadBody> => {
  const sentAction = Predicate.hasProperty(body, "action") ? body.action : undefined
  const { type, ...members } = Predicate.isReadonlyObject(sentAction) ? sentAction : {}
  if (!Predicate.isReadonlyObject(sentAction) || !Predicate.isString(type) || !Action.isDecodedActionType(type)) {
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
  Result.fromOption(Encoding.decode(body), () => invalidRequest([{ path: [], message: "Not valid UTF-8" }]))

/** Like {@link read}, for the text of a body, which must be strict JSON. Fails with `InvalidRequest`. */
export const readText = (text: string): Result.Result<ReadBody, InvalidRequest> =>
  Result.flatMap(
    Result.mapError(Encoding.parseStrict(text), (refusal) => invalidRequest([refusal])),
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

const membersAt = (text: string, path: ReadonlyArray<string>): ReadonlyMap<string, Encoding.Span> => {
  let found = Encoding.members(text)
  for (const key of path) {
    const span = found.get(key)
    if (span === undefined) return new Map()
    found = Encoding.members(text, span.start)
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
  const spans: Array<Encoding.Span> = []
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
  readonly action: Action.SignedEnvelope["action"]
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
    const message = Action.documentedFormAdvice(action)
    return message === undefined || !Action.hasDocumentedForm(action.type)
      ? []
      : [{ path: [...path, Action.formKeys[action.type].documented], message }]
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
  isMeant: (part: CanonicalAction.UnknownPart) => boolean
): ReadonlyArray<string> => {
  const { type } = action
  const order = CanonicalAction.l1(type)
  // a warning reports a form that the venue documents but does not accept
  if (Action.documentedFormAdvice({ ...action, type }) !== undefined) return []
  if (order !== undefined) {
    return CanonicalAction.findUnknown(order, action, path).filter(isMeant).slice(0, maxUnknown).map(({ kind, path }) =>
      `${kind === "word" ? "the word at " : ""}${SigningWarning.pathText(path)} ${Action.notKnown}`
    )
  }
  return Action.isActionType(type) || "signatureChainId" in action ||
      !isMeant({ kind: "word", path: [...path, "type"] })
    ? []
    : [`the action type ${SigningWarning.printable(JSON.stringify(type.slice(0, 64)))} ${Action.notKnown}`]
}

/** Describes the types and the members in the actions of a body that the catalog lacks, one clause of ASCII each. */
export const unknownMembers = (body: ReadBody): ReadonlyArray<string> =>
  actionsIn(body).flatMap((placed) => {
    const order = CanonicalAction.l1(placed.action["type"])
    return order !== undefined && CanonicalAction.isKnown(order, placed.action)
      ? []
      : describeUnknown(placed, ({ kind, path }) => kind === "member" || path.at(-1) === "type")
  })

/** The mistakes in a body, and its action with the correctable mistakes corrected. */
export interface BodyNormalization {
  readonly mistakes: ReadonlyArray<Mistake>
  /** The types, members and words of the corrected action that the catalog lacks, one clause each. */
  readonly unknown: ReadonlyArray<string>
  /** The action with its mistakes corrected; absent if the action has no canonical form. */
  readonly mended: CanonicalAction.CanonicalAction | undefined
}

/** The mistake that does not affect the signature of a user-signed action: its addresses are signed as bytes. */
const beside: Mistake["mistake"] = "letterCase"

const typeForm = (
  profile: VenueProfile,
  action: CanonicalAction.Action,
  path: ActionForm.Path
): ActionForm.Form | undefined => {
  const type = String(action["type"])
  const meant = Action.isActionType(type) ? undefined : ActionForm.nearestType(type)
  if (meant === undefined) return undefined
  const form = actionForm(profile, { ...action, type: meant }, path)
  return {
    value: form.value,
    faults: [
      { mistake: "unknownType", path: [...path, "type"], found: JSON.stringify(type), expected: JSON.stringify(meant) },
      ...form.faults
    ]
  }
}

const actionForm = (
  profile: VenueProfile,
  action: CanonicalAction.Action,
  path: ActionForm.Path,
  isHashed = true
): ActionForm.Form => {
  const type = CanonicalAction.find(action["type"])
  if (type === undefined) {
    const order = CanonicalAction.l1(action["type"])
    if (order === undefined) return typeForm(profile, action, path) ?? { value: action, faults: [] }
    const form = ActionForm.normalizeAction(order, action, path)
    return Predicate.isReadonlyObject(form.value)
      ? { ...form, value: CanonicalAction.arrangeMembers(order, form.value) }
      : form
  }
  const order = CanonicalAction.order(profile)(type)
  const form = ActionForm.normalizeAction(order, action, path, isHashed)
  return isHashed ? form : { ...form, faults: form.faults.filter(({ mistake }) => mistake !== beside) }
}

const asAction = ({ value }: ActionForm.Form, otherwise: CanonicalAction.Action): CanonicalAction.Action =>
  Predicate.isReadonlyObject(value) ? value : otherwise

/** Units, other than milliseconds, in which clients send timestamps. The magnitude of a timestamp shows its unit. */
const units = [
  { from: 5e8, to: 1e11, name: "seconds", toMillis: (time: bigint) => time * 1000n },
  { from: 1e14, to: 1e17, name: "microseconds", toMillis: (time: bigint) => time / 1000n },
  { from: 1e17, to: 1e20, name: "nanoseconds", toMillis: (time: bigint) => time / 1_000_000n }
] as const

const timeMistake = (path: ActionForm.Path, value: unknown): ReadonlyArray<Mistake> => {
  if (!Predicate.isNumber(value) && !Predicate.isBigInt(value)) return []
  const unit = units.find(({ from, to }) => value >= from && value < to)
  return unit === undefined || !Number.isInteger(Number(value)) ? [] : [{
    mistake: "timeUnit",
    path,
    found: `${value} (${unit.name})`,
    expected: String(unit.toMillis(BigInt(value)))
  }]
}

const actionNonceMistakes = ({ action, path }: Placed, nonce: number): ReadonlyArray<Mistake> => {
  const type = CanonicalAction.find(action["type"])
  const field = type === undefined ? "nonce" : CanonicalAction.nonceField(type)?.name ?? "nonce"
  const inner = action[field]
  const unit = timeMistake([...path, field], inner)
  const isScheduled = action["type"] === "scheduleCancel"
  if (isScheduled) return timeMistake([...path, "time"], action["time"])
  if (!Predicate.isNumber(inner) || inner === nonce) return type === undefined ? [] : unit
  if (unit.length > 0) return unit
  // the signature covers the action's own nonce, or, for the inner action of a multi-sig, the nonce of the body
  return [{
    mistake: "otherNonce",
    path: path.length === 1 ? ["nonce"] : [...path, field],
    found: String(path.length === 1 ? nonce : inner),
    expected: String(path.length === 1 ? inner : nonce)
  }]
}

const nonceMistakes = (body: ReadBody): ReadonlyArray<Mistake> => {
  const { expiresAfter, nonce } = body.signed
  const unit = timeMistake(["nonce"], nonce)
  return [
    ...unit,
    ...timeMistake(["expiresAfter"], expiresAfter),
    ...actionsIn(body).flatMap((placed) => actionNonceMistakes(placed, nonce))
      .filter(({ mistake }) => mistake !== "otherNonce" || unit.length === 0)
  ]
}

const bitMistake = (v: unknown, path: ActionForm.Path): ReadonlyArray<Mistake> =>
  v === 0 || v === 1
    ? [{ mistake: "recoveryBitForm", path: [...path, "v"], found: String(v), expected: String(v + 27) }]
    : []

const signatureMistakes = ({ action, signed: { signature } }: ReadBody): ReadonlyArray<Mistake> => [
  ...bitMistake(signature.v, ["signature"]),
  ...(action?.type === "multiSig"
    ? action.signatures.flatMap(({ v }, index) => bitMistake(v, ["action", "signatures", index]))
    : [])
]

const documentedMistakes = (body: ReadBody): ReadonlyArray<Mistake> =>
  documentedForms(body).map(({ path }): Mistake => {
    const inner = path.length > 2 && body.action?.type === "multiSig" ? body.action.payload.action : body.signed.action
    return {
      mistake: "documentedForm",
      path: [...path],
      found: String(path.at(-1)),
      expected: Action.hasDocumentedForm(inner.type) ? Action.formKeys[inner.type].real.join(" or ") : ""
    }
  })

/** Describes what a body has and the catalog lacks, except the parts that are mistakes. */
const unexplainedParts = (body: ReadBody, mistakes: ReadonlyArray<Mistake>): ReadonlyArray<string> =>
  actionsIn(body).flatMap((placed) =>
    describeUnknown(
      placed,
      (part) => !mistakes.some(({ path }) => part.path.every((key, at) => key === path[at]))
    )
  )

// maximum number of reported mistakes: a body with a thousand orders could otherwise produce thousands
const maxMistakes = 16

/**
 * Returns the mistakes in a body, and the body's action with the correctable mistakes corrected. `canonical` is the
 * action in the form that is hashed.
 */
export const of = (
  profile: VenueProfile,
  body: ReadBody,
  canonical: CanonicalAction.CanonicalAction | undefined
): BodyNormalization => {
  const others = [...documentedMistakes(body), ...nonceMistakes(body), ...signatureMistakes(body)]
  const normalization = (
    faults: ReadonlyArray<Mistake>,
    mended: CanonicalAction.CanonicalAction | undefined
  ): BodyNormalization => ({
    mistakes: [...faults, ...others].slice(0, maxMistakes),
    unknown: unexplainedParts(body, [...faults, ...others]),
    mended
  })
  if (canonical === undefined) return normalization([], undefined)
  if (canonical.kind === "single") {
    const form = actionForm(profile, canonical.action, ["action"], false)
    return normalization(form.faults, { kind: "single", action: asAction(form, canonical.action) })
  }
  const wrapper = canonical.action
  const form = actionForm(profile, wrapper.payload.action, ["action", "payload", "action"])
  const payload = { ...wrapper.payload, action: asAction(form, wrapper.payload.action) }
  return normalization(form.faults, { kind: "multiSig", action: { ...wrapper, payload } })
}

/** Returns the mistakes in an unsigned action, one sentence each, in ASCII without line breaks. */
export const ofAction = (profile: VenueProfile, action: CanonicalAction.Action): ReadonlyArray<string> =>
  actionForm(profile, action, ["action"]).faults.slice(0, maxSentences)
    .map((mistake) => SigningWarning.mistakeClause(profile, mistake))

/** Maximum number of mistakes that are described in sentences. */
const maxSentences = 4

/**
 * Returns the mistakes in a body, one sentence each. They are ASCII without line breaks, so that they fit into a
 * header.
 */
export const sentences = (profile: VenueProfile, body: ReadBody): ReadonlyArray<string> =>
  of(profile, body, Result.getOrUndefined(canonicalAction(profile, body))).mistakes
    // omits the use of a documented form that the venue does not accept, because a warning already reports it
    .filter(({ mistake }) => mistake !== "documentedForm").slice(0, maxSentences)
    .map((mistake) => SigningWarning.mistakeClause(profile, mistake))

/** A body extracted from its wrapper. */
export interface UnwrappedBody {
  readonly text: string
  readonly mistake: Mistake
}

/** Maximum number of nested wrappers. */
const maxLayers = 3

const parsed = (value: unknown): unknown =>
  Predicate.isString(value) ? Result.getOrUndefined(Encoding.parseStrict(value)) : value

/**
 * Returns the only member whose value is an object with a signature, or the JSON text of such an object. Returns
 * `undefined` if no member or several members match.
 */
const wrapperMember = (
  value: Readonly<Record<string, unknown>>
): readonly [name: string, inner: unknown] | undefined => {
  const found = Object.entries(value).filter(([, member]) => Predicate.isReadonlyObject(parsed(member)))
  return found.length === 1 ? found[0] : undefined
}

/** Parses the action if it is a string: some programs send it as JSON text. */
const withAction = (body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  ...body,
  action: parsed(body["action"])
})

/** Returns the body inside a wrapper; `undefined` if the text is not a wrapper. */
export const unwrap = (text: string): UnwrappedBody | undefined => {
  const path: Array<string> = []
  let value: unknown = parsed(text)
  for (let layer = 0; layer <= maxLayers; layer++) {
    if (Predicate.isString(value)) {
      value = parsed(value)
      path.push("JSON text")
    }
    if (!Predicate.isReadonlyObject(value)) return undefined
    if (Object.hasOwn(value, "action") && Object.hasOwn(value, "signature")) {
      const whole = withAction(value)
      const where = Predicate.isString(value["action"]) ? [...path, "JSON text at \"action\""] : path
      if (where.length === 0 || !Predicate.isReadonlyObject(whole["action"])) return undefined
      return {
        text: Encoding.stringify(whole),
        mistake: { mistake: "wrappedBody", path: [], found: where.join(", "), expected: "the object itself" }
      }
    }
    const inner = wrapperMember(value)
    if (inner === undefined) return undefined
    const [name, member] = inner
    path.push(JSON.stringify(name))
    value = member
  }
  return undefined
}
