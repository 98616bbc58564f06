/**
 * Profiles of the venue's networks: the constants that the venue's documentation does not define, and the
 * service that selects a program's network.
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"

/**
 * The constants of a network that are part of a hash or a signed message, and the chain ID of its EVM. A profile
 * contains only data, no code.
 */
export interface VenueProfile {
  readonly name: "mainnet" | "testnet"
  /** The `source` of the phantom agent that signs L1 actions. */
  readonly source: "a" | "b"
  /** The name of the network field in requests and in typed data. The documentation calls this field `venueChain`. */
  readonly chainField: string
  /** The network's name, as the value of {@link VenueProfile.chainField}. */
  readonly chainName: "Mainnet" | "Testnet"
  /** EIP-712 domain name of user-signed actions. */
  readonly userSignedDomain: string
  /** The prefix of the EIP-712 primary type of user-signed actions. */
  readonly typePrefix: string
  /** The chain ID that a node of the network returns for `eth_chainId`. */
  readonly evmChainId: number
}

/** The documentation's name for {@link VenueProfile.chainField}; accepted in requests, never hashed. */
export const documentedChainField = "venueChain"

/** The default chain ID of typed data; the venue accepts any chain ID. */
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

/** Returns the profile of a network. */
export const profileFor = (network: VenueProfile["name"]): VenueProfile => network === "mainnet" ? mainnet : testnet

/** Returns the profile of the other network, to detect a signature that was made for the wrong network. */
export const otherThan = ({ name }: VenueProfile): VenueProfile => name === "mainnet" ? testnet : mainnet

/** A network by name, or a custom profile. */
export type Network = VenueProfile["name"] | VenueProfile

/** Returns the profile of a network, or a custom profile unchanged. */
export const resolve = (network: Network): VenueProfile => typeof network === "string" ? profileFor(network) : network

/**
 * The network for which a program makes and verifies signatures.
 *
 * Action builders, the admission checks of signed requests, and the sandbox read it from this service.
 *
 * Provided by `VenueProfile.layer` or `Trading.layer`.
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
 * Provides the network of a program. Each call returns a new layer, so one program can use two networks.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (network: Network): Layer.Layer<Venue> => Layer.succeed(Venue, resolve(network))
