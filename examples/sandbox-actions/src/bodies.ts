/** One signed body for each action, as the sandbox's accounts would send it. */
import * as SignedAction from "@trigate/domain/actions/Action"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import * as Effect from "effect/Effect"

const { cosigner, jailedValidator, leader, multiSigUser, trader, validator } = keys

const delegation = (nonce: number) => ({
  type: "tokenDelegate" as const,
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet" as const,
  validator: validator.address,
  wei: 150_000_000n,
  isUndelegate: false,
  nonce
})

/** How each action is made, by its type. */
const makers = {
  tokenDelegate: (nonce: number) => SandboxSigner.signAction(trader, { nonce, action: delegation(nonce) }),
  CSignerAction: (nonce: number) =>
    SandboxSigner.signAction(jailedValidator, { nonce, action: { type: "CSignerAction", unjailSelf: null } }),
  evmUserModify: (nonce: number) =>
    SandboxSigner.signAction(trader, { nonce, action: { type: "evmUserModify", usingBigBlocks: true } }),
  multiSig: (nonce: number) =>
    SandboxSigner.signMultiSig({
      nonce,
      multiSigUser: multiSigUser.address,
      action: delegation(nonce),
      leader,
      cosigners: [leader, cosigner]
    })
}

/** A type of action that this example signs. */
export type ActionType = keyof typeof makers

/** The types, in the order in which they are offered. */
export const actionTypes = Object.keys(makers)

/** Whether a word is one of the types. */
export const isActionType = (word: string | undefined): word is ActionType =>
  word !== undefined && Object.hasOwn(makers, word)

/** The JSON text of a signed action under a nonce. */
export const body = Effect.fnUntraced(function*(type: ActionType, nonce: number) {
  return yield* SignedAction.write(yield* makers[type](nonce))
})
