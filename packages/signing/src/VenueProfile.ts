/** How one real network of the trading chain spells what the documents leave open, and which network a program is for. */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"

/**
 * The spellings that enter a hash or a signed message, and the chain of the network's EVM. Data only: two profiles of one
 * venue differ in values, never in code.
 */
export interface VenueProfile {
  readonly name: "mainnet" | "testnet"
  /** `source` of the phantom agent that signs L1 actions. */
  readonly source: "a" | "b"
  /** Name, on the wire and in typed data, of the field that the documents call `venueChain`. */
  readonly chainField: string
  /** Value of that field. */
  readonly chainName: "Mainnet" | "Testnet"
  /** EIP-712 domain name of user-signed actions. */
  readonly userSignedDomain: string
  /** What precedes the type name in the primary type of user-signed actions. */
  readonly typePrefix: string
  /** The chain ID that a node of the network returns for `eth_chainId`. */
  readonly evmChainId: number
}

/** The documents' spelling of {@link VenueProfile.chainField}; accepted in requests, never hashed. */
export const documentedChainField = "venueChain"

/** Chain id of the typed data where the signer chooses none; the venue takes any. */
export const defaultChainId = "0x66eee"

const spelling = {
  chainField: "hyperliquidChain",
  userSignedDomain: "HyperliquidSignTransaction",
  typePrefix: "HyperliquidTransaction:"
} as const

/** Hyperliquid's main network. */
export const mainnet: VenueProfile = {
  name: "mainnet",
  source: "a",
  chainName: "Mainnet",
  evmChainId: 999,
  ...spelling
}

/** Hyperliquid's test network. */
export const testnet: VenueProfile = {
  name: "testnet",
  source: "b",
  chainName: "Testnet",
  evmChainId: 998,
  ...spelling
}

/** The profile of a network. */
export const profileFor = (network: VenueProfile["name"]): VenueProfile => network === "mainnet" ? mainnet : testnet

/** The network that a signature is for when it is not for the given one. */
export const otherThan = ({ name }: VenueProfile): VenueProfile => name === "mainnet" ? testnet : mainnet

/** A network by its name, or by a profile of its own. */
export type Network = VenueProfile["name"] | VenueProfile

/**
 * The network that a program signs for and checks signatures for.
 *
 * It is said once: the builders of actions, admission and the sandbox all read it here.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { VenueProfile } from "@trigate/signing"
 * import { Console, Effect } from "effect"
 *
 * const program = VenueProfile.Venue.use(({ chainField, chainName }) => Console.log(chainField, chainName))
 *
 * await Effect.runPromise(Effect.provide(program, VenueProfile.layer("testnet")))
 * ```
 * ```text
 * hyperliquidChain Testnet
 * ```
 */
export class Venue extends Context.Service<Venue, VenueProfile>()("@trigate/signing/VenueProfile/Venue") {}

/**
 * The network of a program; a function, so that two networks in one program are two layers.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (network: Network): Layer.Layer<Venue> =>
  Layer.succeed(Venue, typeof network === "string" ? profileFor(network) : network)
