/** What a multi-sig proposal does, in plain sentences: what a co-signer reads before signing. */
import * as JsonText from "@trigate/domain/JsonText"
import * as BigDecimal from "effect/BigDecimal"
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import type { Action } from "./CanonicalAction.ts"
import { printable } from "./internal/plainText.ts"
import { toUint64 } from "./internal/uint64.ts"
import type { MultiSigDeadline } from "./MultiSigDeadline.ts"
import * as SigningCaution from "./SigningCaution.ts"

/** The facts of a proposal that a co-signer decides on; addresses in lower case, actions in canonical form. */
export interface SummaryFacts {
  readonly network: string
  readonly multiSigUser: string
  readonly outerSigner: string
  readonly action: Action
  readonly sentAction?: Action
  readonly nonce: number
  readonly vaultAddress?: string
  readonly deadline: MultiSigDeadline
  readonly threshold?: number
  readonly authorizedUsers?: ReadonlyArray<string>
}

const quoted = (value: unknown): string => printable(JsonText.stringify(value))

const instant = (millis: number): string =>
  Option.match(DateTime.make(millis), { onNone: () => `millisecond ${millis}`, onSome: DateTime.formatIso })

const hype = (wei: unknown): string => {
  const amount = toUint64(wei)
  return amount === undefined
    ? `${quoted(wei)} wei`
    : `${BigDecimal.format(BigDecimal.make(amount, 8))} HYPE (wei ${amount})`
}

const deed = (action: Action): string => {
  switch (action["type"]) {
    case "tokenDelegate":
      return action["isUndelegate"] === true
        ? `takes ${hype(action["wei"])} of stake back from the validator ${quoted(action["validator"])}`
        : `delegates ${hype(action["wei"])} of stake to the validator ${quoted(action["validator"])}`
    case "CSignerAction":
      return "jailSelf" in action ? "jails itself as a validator" : "ends its jailing as a validator"
    case "evmUserModify":
      return `chooses ${action["usingBigBlocks"] === true ? "big" : "small"} blocks for its EVM transactions`
    default:
      return `performs the action ${quoted(action)}`
  }
}

const cosigners = ({ authorizedUsers, threshold }: SummaryFacts): string => {
  const needed = threshold === undefined
    ? "How many co-signers have to approve is not said here"
    : `${threshold}${authorizedUsers === undefined ? "" : ` of ${authorizedUsers.length}`} co-signers have to approve`
  return authorizedUsers === undefined ? `${needed}.` : `${needed}: ${authorizedUsers.join(", ")}.`
}

const expiry = ({ at, because }: MultiSigDeadline): string =>
  because === "expiresAfter"
    ? `The venue refuses it after ${instant(at)}, when it expires.`
    : `The venue refuses it after ${instant(at)}, when its nonce becomes too old.`

/** One sentence for each fact, the deed first; ASCII, so that it can be shown anywhere. */
export const make = (facts: SummaryFacts): ReadonlyArray<string> => {
  const { action, multiSigUser, network, nonce, outerSigner, sentAction, vaultAddress } = facts
  return [
    `On ${network}, the multi-sig account ${multiSigUser} ${deed(action)}.`,
    ...(sentAction === undefined ? [] : [`It is sent to the venue in another form: ${quoted(sentAction)}.`]),
    ...(vaultAddress === undefined ? [] : [`It acts for the vault or sub-account ${vaultAddress}.`]),
    `The leader ${outerSigner} sends it, under the nonce ${nonce} (${instant(nonce)}).`,
    cosigners(facts),
    expiry(facts.deadline),
    ...(action["type"] === "evmUserModify"
      ? ["Caution: the account's original key keeps control of its EVM account, whatever the co-signers decide."]
      : []),
    ...SigningCaution.ofValues(sentAction ?? action).map(({ message }) => `Caution: ${message}.`)
  ]
}
