/** Checks signed actions: actions that are accepted, that the gateway refuses, and that the venue refuses. */
import type { RejectionReason } from "@trigate/domain/actions/ActionOutcome"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import { contracts, keys, traderStake } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import type { Unhashable } from "@trigate/signing/unstable/actions/ActionHash"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { ConformanceCheck } from "./ConformanceCheck.ts"
import { equals, failsWith, succeeds } from "./ConformanceCheck.ts"
import type { ConformanceTarget } from "./ConformanceTarget.ts"

const { agent, cosigner, jailedValidator, leader, multiSigUser, stranger, trader, validator } = keys

const bigBlocks = (usingBigBlocks: boolean) => ({ type: "evmUserModify", usingBigBlocks }) as const

const unjail = { type: "CSignerAction", unjailSelf: null } as const

const delegation = (target: `0x${string}`, wei: bigint, nonce: number, isUndelegate = false) => ({
  type: "tokenDelegate",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  validator: target,
  wei,
  isUndelegate,
  nonce
} as const)

const day = 86_400_000

// every action in this file can be hashed; a failure is an error of the suite itself
const orDie = <A>(effect: Effect.Effect<A, Unhashable>): Effect.Effect<A> => Effect.orDie(effect)

/**
 * Returns the checks of the target's `exchange` methods. The nonces begin `firstNonce` milliseconds after the clock's
 * time.
 */
export const checks = (target: ConformanceTarget, firstNonce: number): ReadonlyArray<ConformanceCheck> => {
  const { evm, exchange } = target
  let taken = 0
  const nextNonce = Effect.map(Clock.currentTimeMillis, (now) => {
    taken += 1
    return now + firstNonce + taken
  })
  const signed = (
    key: TestKey,
    action: (nonce: number) => SandboxSigner.Unsigned["action"],
    envelope: Partial<SandboxSigner.Unsigned> = {},
    profile = VenueProfile.mainnet
  ) =>
    Effect.flatMap(nextNonce, (fresh) => {
      const nonce = envelope.nonce ?? fresh
      return SandboxSigner.signAction(key, { ...envelope, nonce, action: action(nonce) }, profile)
    })
  const together = (changes: Partial<SandboxSigner.MultiSigRequest>) =>
    Effect.flatMap(nextNonce, (nonce) =>
      SandboxSigner.signMultiSig({
        nonce,
        multiSigUser: multiSigUser.address,
        action: bigBlocks(false),
        leader,
        cosigners: [leader, cosigner],
        ...changes
      }))

  type Signed = ReturnType<typeof signed>
  const submit = (action: Signed) => Effect.flatMap(orDie(action), exchange.submit)
  const accepted = (action: Signed) =>
    Effect.flatMap(
      succeeds(submit(action)),
      ({ entries, response, status }) =>
        equals(
          "the venue's response",
          { status, type: response.type, entries },
          { status: "ok", type: "default", entries: [{ _tag: "Done" }] }
        )
    )
  const rejected = (reason: RejectionReason, message: string, action: Signed) =>
    failsWith(submit(action), ["ActionRejected"], { reason, message })

  return [
    {
      name: "an account's choice of big blocks is read back",
      effect: Effect.gen(function*() {
        const read = succeeds(evm.usingBigBlocks({ address: trader.address }))
        yield* accepted(signed(trader, () => bigBlocks(true)))
        yield* equals("eth_usingBigBlocks", yield* read, true)
        yield* accepted(signed(trader, () => bigBlocks(false)))
        yield* equals("eth_usingBigBlocks", yield* read, false)
      })
    },
    {
      name: "stake is delegated and undelegated",
      effect: Effect.andThen(
        accepted(signed(trader, (nonce) => delegation(validator.address, 5_000_000_001n, nonce))),
        accepted(signed(trader, (nonce) => delegation(validator.address, 5_000_000_001n, nonce, true)))
      )
    },
    { name: "a validator unjails itself", effect: accepted(signed(jailedValidator, () => unjail)) },
    { name: "an API wallet acts for its account", effect: accepted(signed(agent, () => bigBlocks(false))) },
    {
      name: "an action of a type without a schema is sent as signed",
      effect: accepted(signed(trader, () => ({ type: "noop" })))
    },
    { name: "a multi-sig action with enough signatures is executed", effect: accepted(together({})) },
    {
      name: "the rejection of an unknown signer contains the address recovered from the signature",
      effect: failsWith(submit(signed(stranger, () => bigBlocks(true))), ["ActionRejected"], {
        reason: "UnknownSigner",
        message: `User or API Wallet ${stranger.address} does not exist.`,
        signer: stranger.address
      })
    },
    {
      name: "identical bytes are not accepted twice",
      effect: Effect.gen(function*() {
        const action = yield* orDie(signed(trader, () => bigBlocks(false)))
        yield* succeeds(exchange.submit(action))
        yield* failsWith(exchange.submit(action), ["NonceAlreadyUsed"], { signer: trader.address, nonce: action.nonce })
      })
    },
    {
      name: "a nonce outside the window is refused before it is sent",
      effect: Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        for (const nonce of [now - 3 * day, now + 2 * day]) {
          yield* failsWith(submit(signed(trader, () => bigBlocks(true), { nonce })), ["NonceOutOfWindow"], { nonce })
        }
      })
    },
    {
      name: "the nonce inside an action must equal the body's nonce",
      effect: failsWith(
        submit(signed(trader, (nonce) => delegation(validator.address, 1n, nonce + 1))),
        ["NonceMismatch"]
      )
    },
    {
      name: "only a validator jails itself",
      effect: rejected("NotValidator", "Signer invalid or inactive for current epoch", signed(trader, () => unjail))
    },
    {
      name: "stake can be delegated to validators only",
      effect: rejected(
        "Refused",
        "Unknown validator",
        signed(trader, (nonce) => delegation(contracts.none, 1n, nonce))
      )
    },
    {
      name: "a delegation cannot exceed the balance",
      effect: rejected(
        "Refused",
        "Insufficient stake",
        signed(trader, (nonce) => delegation(validator.address, traderStake * 10_000_000n, nonce))
      )
    },
    {
      name: "an API wallet cannot delegate stake",
      effect: rejected(
        "UnknownSigner",
        `Must deposit before performing actions. User: ${agent.address}`,
        signed(agent, (nonce) => delegation(validator.address, 1n, nonce))
      )
    },
    {
      name: "an expired action is refused",
      effect: Effect.flatMap(Clock.currentTimeMillis, (now) =>
        rejected(
          "Expired",
          "Action already expired",
          signed(trader, () => bigBlocks(true), { expiresAfter: now - 60_000 })
        ))
    },
    {
      name: "an unknown vault is refused",
      effect: rejected(
        "VaultUnknown",
        `Vault not registered: ${contracts.none}`,
        signed(trader, () => bigBlocks(true), { vaultAddress: contracts.none })
      )
    },
    {
      name: "an action signed for the other network is refused",
      effect: failsWith(
        submit(signed(
          trader,
          (nonce) => ({ ...delegation(validator.address, 1n, nonce), hyperliquidChain: "Testnet" }),
          {},
          VenueProfile.testnet
        )),
        ["InvalidSignature"]
      )
    },
    {
      name: "a multi-sig action with too few signatures is refused",
      effect: rejected("MultiSig", "Multi-sig threshold not met", together({ cosigners: [leader] }))
    },
    {
      name: "a signature of an unauthorized co-signer is refused",
      effect: rejected("MultiSig", "Invalid multi-sig inner signer", together({ cosigners: [leader, stranger] }))
    },
    {
      name: "an unauthorized leader is refused",
      effect: rejected("MultiSig", "Multi-sig outer signer must be an L1 user.", together({ leader: stranger }))
    },
    {
      name: "an action variant that only the documentation contains is relayed, and refused by the venue",
      effect: Effect.gen(function*() {
        const action = yield* orDie(signed(trader, () => bigBlocks(true)))
        yield* failsWith(
          exchange.submit({ ...action, action: { type: "evmUserModify", modifications: [] } }),
          ["ActionRejected"],
          { reason: "ShapeRefused" }
        )
      })
    }
  ]
}
