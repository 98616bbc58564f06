/**
 * Reads a signed body, telling faults in the words of the one form that the body means.
 *
 * A union tells the faults of all its members at once; what a caller left out of one form is noise to one who wrote the
 * other, so the form is chosen first, by the member that only it has.
 */
import type { Action, ActionType } from "@trigate/domain/Action"
import {
  CSignerActionDocumented,
  EvmUserModify,
  EvmUserModifyDocumented,
  formKeys,
  JailSelf,
  MultiSig,
  TokenDelegate,
  TokenDelegateDocumented,
  UnjailSelf
} from "@trigate/domain/Action"
import { faultsOf } from "@trigate/domain/Decode"
import type { AnyCodec } from "@trigate/domain/Operation"
import type { RequestFault } from "@trigate/domain/RequestError"
import { SignedEnvelope } from "@trigate/domain/SignedAction"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** A value read, or all its faults with their paths in the body. */
export type Read<A> = Result.Result<A, ReadonlyArray<RequestFault>>

const reader = <S extends AnyCodec>(schema: S, prefix: ReadonlyArray<string>) => {
  const decode = Schema.decodeUnknownResult(schema, { errors: "all" })
  return (value: unknown): Read<S["Type"]> => Result.mapError(decode(value), (error) => faultsOf(error, prefix))
}

const inAction = <S extends AnyCodec>(schema: S) => reader(schema, ["action"])

const readMultiSig = inAction(MultiSig)

type Reader = (value: unknown) => Read<Action>

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

/** Reads the `action` of a body as one of the four types. */
export const readAction = (type: ActionType, action: unknown): Read<Action> => {
  if (type === "multiSig") return readMultiSig(action)
  const { documented, real } = formKeys[type]
  const given = Predicate.isObject(action) ? real.filter((key) => key in action) : []
  if (given.length > 1) return refused(`Expected only one of ${quoted(real)}`)
  const isDocumented = given.length === 0 && Predicate.hasProperty(action, documented)
  const key = isDocumented ? documented : given[0] ?? (real.length === 1 ? real[0] : undefined)
  const read = key === undefined ? undefined : readers[type][key]
  return read === undefined ? refused(`Expected a member ${quoted(real)}`) : read(action)
}

/** Reads what every body has, whatever its action type; the action keeps all its members. */
export const readEnvelope: (value: unknown) => Read<SignedEnvelope> = reader(SignedEnvelope, [])
