/**
 * Every module of `@trigate/sandbox` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/sandbox/…`: Node then loads only those.
 */

/** The initial state of every sandbox. `SandboxExamples` names what is in it. */
export * as Genesis from "./Genesis.ts"

/** A venue, a token chain and a layer 2 in memory, behind the same services as the live ones. */
export * as Sandbox from "./Sandbox.ts"

/** What every sandbox starts with, under any seed: a working example for each documented call. */
export * as SandboxExamples from "./SandboxExamples.ts"

/** Signs actions with test keys, as a wallet does: over typed data. */
export * as SandboxSigner from "./SandboxSigner.ts"

/** The state of a sandbox's chains. It can be read and set while they are served. */
export * as SandboxState from "./SandboxState.ts"

/** Deterministic pseudo-random values. The same seed and key give the same value, at any time and in any order. */
export * as Seed from "./Seed.ts"

/** The token chain: its contracts, and its HTTP API v2 in the dialects of both server families. */
export * as TokenServer from "./TokenServer.ts"

/** What the sandbox's two EVM chains have in common: blocks that come by the clock, accounts, transactions. */
export * as EvmChain from "./evm/EvmChain.ts"

/** Code of the contracts that the sandbox's EVM chains start with. */
export * as EvmContracts from "./evm/EvmContracts.ts"

/** Runs EVM code with `@ethereumjs/vm`. */
export * as EvmMachine from "./evm/EvmMachine.ts"

/** A node of a sandbox's EVM chain: the standard JSON-RPC methods. */
export * as EvmNode from "./evm/EvmNode.ts"

/** Accepts signed transactions on a sandbox's EVM chain, or refuses them in the words of common nodes. */
export * as EvmSubmission from "./evm/EvmSubmission.ts"

/** Blocks, transactions, receipts and logs of a sandbox's EVM chain as a node writes them. */
export * as EvmWire from "./evm/EvmWire.ts"

/** The state of a sandbox's EVM chain. It is an immutable value, so that keeping the state of each block costs little. */
export * as EvmWorld from "./evm/EvmWorld.ts"

/** A layer 2: a block every two seconds, receipts of several families, and blocks that become final later. */
export * as Layer2Chain from "./evm/Layer2Chain.ts"

/** The trading chain's EVM: a block a second, gas prices of small and big blocks, and the big-block flags. */
export * as VenueEvm from "./evm/VenueEvm.ts"

/** What the sandbox's venue provides for its streams: what its markets and accounts are now, and what has happened to accounts. */
export * as VenueFeed from "./streams/VenueFeed.ts"

/** The sandbox's streams: each subscription as the queries of its venue answer it, at the venue's pace. */
export * as VenueStreams from "./streams/VenueStreams.ts"

/** The coins of the venue: how they are printed, and their prices, candles and books as functions of time. */
export * as CandleMarket from "./venue/CandleMarket.ts"

/** The spot tokens and pairs of the venue: a few real ones and many made-up ones, with gaps in their indexes. */
export * as SpotMetaBook from "./venue/SpotMetaBook.ts"

/** Queries about a user without a type: stake, signers, and the empty lists of what the sandbox does not have. */
export * as VenueAccounts from "./venue/VenueAccounts.ts"

/** How the venue answers a query of `POST /info`: what it sees, and the forms of its responses. */
export * as VenueAnswer from "./venue/VenueAnswer.ts"

/** Candle history of the sandbox: every closed bar since the listing of a coin, as a recorder would have taken it. */
export * as VenueArchive from "./venue/VenueArchive.ts"

/** The venue's `POST /exchange`: reads a signed action, decides on it, and answers in the venue's words. */
export * as VenueExchange from "./venue/VenueExchange.ts"

/** The venue's `POST /info`: spot metadata, candles, markets, prices and books. */
export * as VenueInfo from "./venue/VenueInfo.ts"

/** The venue's refusals, in its own words: from its documentation, its clients' tests and a catalogue of its testnet. */
export * as VenueRefusal from "./venue/VenueRefusal.ts"

/** What the venue remembers of accounts, API wallets, validators and nonces, and how a test sets it. */
export * as VenueState from "./venue/VenueState.ts"

/** Typed queries about a user: margin and balances, orders and fills, fees and limits, roles and API wallets. */
export * as VenueTrading from "./venue/VenueTrading.ts"
