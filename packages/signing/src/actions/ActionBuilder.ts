/** Builds request bodies: actions in the form of the `Venue`, signed by the `Signer`. */
import type { Signature } from "@trigate/domain/actions/Action"
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import { Signer, type SignerFailure } from "../Signer.ts"
import { defaultChainId, Venue, type VenueProfile } from "../VenueProfile.ts"
import { type Unhashable, type UnsignableAction, wrongShape } from "./ActionHash.ts"
import * as SignerRecovery from "./CanonicalAction.ts"
import * as OrderAction from "./OrderAction.ts"

/** The nonce and the optional members of a request with an L1 action. */
export interface L1Options {
  /** The nonce in milliseconds since 1970, unique for each signer. Take it from a `NonceSource`. */
  readonly nonce: number
  /** The vault or sub-account on whose behalf the action is signed. */
  readonly vaultAddress?: Address | undefined
  /** The time after which the venue refuses the action, in milliseconds. */
  readonly expiresAfter?: number | undefined
}

/**
 * An amount of stake to move. The venue accepts the action only without vault and expiry, and only if the account's own
 * key signs it.
 */
export interface Stake {
  readonly validator: Address
  /** The amount in wei (HYPE x 10^8), from 1 to 2^64 - 1; `Hype.weiFromHype` computes it from a decimal amount. */
  readonly wei: bigint
  /** The nonce in milliseconds since 1970, unique for each signer. Take it from a `NonceSource`. */
  readonly nonce: number
  /**
   * Chain ID of the typed data in 0x hex. Default: 0x66eee. The venue accepts any chain ID; a browser wallet accepts
   * only the ID of its current chain.
   */
  readonly signatureChainId?: `0x${string}` | undefined
}

/** A body for `POST /exchange`. Encode it with `Json.stringify`, which preserves all digits of integers. */
export interface SignedBody<Action> {
  readonly action: Action
  readonly nonce: number
  readonly signature: Signature
  readonly vaultAddress?: Address
  readonly expiresAfter?: number
}

/** The reasons why a signed body cannot be built: the action cannot be hashed, or signing failed. */
export type BuildFailure = Unhashable | SignerFailure

const sign = Effect.fnUntraced(function*<Action>(
  scheme: "l1" | "userSigned",
  action: Action,
  { expiresAfter, nonce, vaultAddress }: L1Options
): Effect.fn.Return<SignedBody<Action>, BuildFailure, Signer | Venue> {
  const signer = yield* Signer
  const profile = yield* Venue
  const context = {
    ...(vaultAddress === undefined ? {} : { vaultAddress: lowerCase(vaultAddress) }),
    ...(expiresAfter === undefined ? {} : { expiresAfter })
  }
  const found = yield* Effect.fromResult(SignerRecovery.requestSignable(profile, { action, nonce, ...context }))
  if (found.scheme !== scheme) {
    return yield* wrongShape("type", `the type of an action with the scheme ${scheme}, not ${found.scheme}`)
  }
  return { action, nonce, signature: yield* signer.sign(found.outer), ...context }
})

const maxWei = 2n ** 64n - 1n

/**
 * Makes an action that moves stake, in the venue's form.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, VenueProfile } from "@trigate/signing"
 *
 * const stake = { validator: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", wei: 100_000_000n, nonce: 1_767_225_600_000 } as const
 * console.log(ActionBuilder.stakeAction(VenueProfile.mainnet, false, stake).hyperliquidChain)
 * ```
 * ```text
 * Mainnet
 * ```
 */
export const stakeAction = (
  profile: VenueProfile,
  isUndelegate: boolean,
  { nonce, signatureChainId = defaultChainId, validator, wei }: Stake
) => ({
  type: "tokenDelegate",
  signatureChainId: lowerCase(signatureChainId),
  [profile.chainField]: profile.chainName,
  validator: lowerCase(validator),
  wei,
  isUndelegate,
  nonce
} as const)

const moveStake = (isUndelegate: boolean, stake: Stake) =>
  stake.wei < 1n || stake.wei > maxWei
    ? Effect.fail(wrongShape("wei", "from 1 to 2^64 - 1"))
    : Effect.flatMap(
      Venue,
      (profile) => sign("userSigned", stakeAction(profile, isUndelegate, stake), { nonce: stake.nonce })
    )

/**
 * Signs an action that delegates stake to a validator.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.delegate({ validator: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", wei: 100_000_000n, nonce: 1_767_225_600_000 })
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * {
 *   type: 'tokenDelegate',
 *   signatureChainId: '0x66eee',
 *   hyperliquidChain: 'Mainnet',
 *   validator: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
 *   wei: 100000000n,
 *   isUndelegate: false,
 *   nonce: 1767225600000
 * }
 * ```
 */
export const delegate = (stake: Stake) => moveStake(false, stake)

/**
 * Signs an action that withdraws delegated stake from a validator. The venue allows a withdrawal no earlier than one
 * day after the delegation.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.undelegate({ validator: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", wei: 100_000_000n, nonce: 1_767_225_600_000 })
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * {
 *   type: 'tokenDelegate',
 *   signatureChainId: '0x66eee',
 *   hyperliquidChain: 'Mainnet',
 *   validator: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
 *   wei: 100000000n,
 *   isUndelegate: true,
 *   nonce: 1767225600000
 * }
 * ```
 */
export const undelegate = (stake: Stake) => moveStake(true, stake)

/**
 * Signs an L1 action of any type. The action's members must be in the order in which the venue hashes them; integers
 * can be bigints.
 *
 * Fails with `UnsignableAction` for an action that is not signed as an L1 action.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.signL1({ type: "updateLeverage", asset: 0, isCross: true, leverage: 5 }, { nonce: 1_767_225_600_000 })
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * { type: 'updateLeverage', asset: 0, isCross: true, leverage: 5 }
 * ```
 */
export const signL1 = <Action extends { readonly type: string }>(
  action: Action,
  options: L1Options
): Effect.Effect<SignedBody<Action>, BuildFailure, Signer | Venue> => sign("l1", action, options)

/**
 * Signs an action with which a validator jails itself.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.jailSelf({ nonce: 1_767_225_600_000 })
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * { type: 'CSignerAction', jailSelf: null }
 * ```
 */
export const jailSelf = (options: L1Options) => signL1({ type: "CSignerAction", jailSelf: null } as const, options)

/**
 * Signs an action with which a validator unjails itself.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.unjailSelf({ nonce: 1_767_225_600_000 })
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * { type: 'CSignerAction', unjailSelf: null }
 * ```
 */
export const unjailSelf = (options: L1Options) => signL1({ type: "CSignerAction", unjailSelf: null } as const, options)

/**
 * Signs an action that makes the account's EVM transactions use big blocks (one per minute, 30M gas).
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.useBigBlocks({ nonce: 1_767_225_600_000 })
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * { type: 'evmUserModify', usingBigBlocks: true }
 * ```
 */
export const useBigBlocks = (options: L1Options) =>
  signL1({ type: "evmUserModify", usingBigBlocks: true } as const, options)

/**
 * Signs an action that makes the account's EVM transactions use small blocks (one per second, 3M gas).
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.useSmallBlocks({ nonce: 1_767_225_600_000 })
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * { type: 'evmUserModify', usingBigBlocks: false }
 * ```
 */
export const useSmallBlocks = (options: L1Options) =>
  signL1({ type: "evmUserModify", usingBigBlocks: false } as const, options)

const built = <Terms, Options, Action extends { readonly type: string }>(
  build: (terms: Terms, options: Options) => Result.Result<Action, UnsignableAction>
) =>
(terms: Terms, options: L1Options & Options): Effect.Effect<SignedBody<Action>, BuildFailure, Signer | Venue> =>
  Effect.flatMap(Effect.fromResult(build(terms, options)), (action) => signL1(action, options))

/**
 * Signs an action that places orders as one batch. The venue accepts or refuses each order separately.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.placeOrders(
 *   { orders: [{ asset: 0, side: "buy", priceInQuote: "60000", sizeInBase: "0.001" }] },
 *   { nonce: 1_767_225_600_000 }
 * )
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * {
 *   type: 'order',
 *   orders: [ { a: 0, b: true, p: '60000', s: '0.001', r: false, t: [Object] } ],
 *   grouping: 'na'
 * }
 * ```
 */
export const placeOrders = built(OrderAction.place)

/**
 * Signs an action that cancels orders by the venue's order IDs. If `fast` is true, the cancels have priority in the
 * venue's mempool.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.cancelOrders([{ asset: 0, orderId: 77738308 }], { nonce: 1_767_225_600_000, fast: true })
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * { type: 'cancel', cancels: [ { a: 0, o: 77738308 } ], f: true }
 * ```
 */
export const cancelOrders = built(OrderAction.cancel)

/**
 * Signs an action that cancels orders by client order IDs. If `fast` is true, the cancels have priority in the venue's
 * mempool.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.cancelOrdersByCloid(
 *   [{ asset: 0, cloid: "0x00000000000000000000000000000001" }],
 *   { nonce: 1_767_225_600_000 }
 * )
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * {
 *   type: 'cancelByCloid',
 *   cancels: [ { asset: 0, cloid: '0x00000000000000000000000000000001' } ]
 * }
 * ```
 */
export const cancelOrdersByCloid = built(OrderAction.cancelByCloid)

/**
 * Signs an action that modifies an open order. If `alwaysPlace` is true, the new order is placed even if the old order is
 * no longer open.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.modifyOrder(
 *   { order: 77738308, to: { asset: 0, side: "buy", priceInQuote: "61000", sizeInBase: "0.001" } },
 *   { nonce: 1_767_225_600_000 }
 * )
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * {
 *   type: 'modify',
 *   oid: 77738308,
 *   order: {
 *     a: 0,
 *     b: true,
 *     p: '61000',
 *     s: '0.001',
 *     r: false,
 *     t: { limit: [Object] }
 *   }
 * }
 * ```
 */
export const modifyOrder = built(OrderAction.modify)

/**
 * Signs an action that modifies several open orders, with the options of {@link modifyOrder}.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.modifyOrders(
 *   [{ order: 77738308, to: { asset: 0, side: "buy", priceInQuote: "61000", sizeInBase: "0.001" } }],
 *   { nonce: 1_767_225_600_000 }
 * )
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * {
 *   type: 'batchModify',
 *   modifies: [ { oid: 77738308, order: [Object] } ]
 * }
 * ```
 */
export const modifyOrders = built(OrderAction.batchModify)

/**
 * Signs an action that places a trailing stop order. The venue's response has the ID of the order.
 *
 * @since 0.1.0
 * @category builders
 * @example
 * ```ts
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = ActionBuilder.placeTrailingStop(
 *   { asset: 0, side: "sell", sizeInBase: "0.001", reduceOnly: true, distance: { percent: "1.5" } },
 *   { nonce: 1_767_225_600_000 }
 * )
 *
 * await Effect.runPromise(program.pipe(
 *   Effect.flatMap(({ action }) => Console.log(action)),
 *   Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer("mainnet")))
 * ))
 * ```
 * ```text
 * {
 *   type: 'trailingStop',
 *   asset: 0,
 *   isBuy: false,
 *   sz: '0.001',
 *   reduceOnly: true,
 *   retracement: { pct: '1.5000%' },
 *   activationPx: null
 * }
 * ```
 */
export const placeTrailingStop = built(OrderAction.trailingStop)
