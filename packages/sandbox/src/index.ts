/**
 * Every module of `@trigate/sandbox` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/sandbox/…`: Node then loads only those.
 */

/** The initial state of every sandbox. `SandboxExamples` names its contents. */
export * as Genesis from "./Genesis.ts"

/** A venue, a token chain and a layer 2 in memory, behind the same services as the live ones. */
export * as Sandbox from "./Sandbox.ts"

/** What every sandbox starts with, under any seed: a working example for each documented call. */
export * as SandboxExamples from "./SandboxExamples.ts"

/** The settings of a sandbox. They count where no upstream address is set. */
export * as SandboxSettings from "./SandboxSettings.ts"

/** Signs actions with test keys, as a wallet does: over typed data. */
export * as SandboxSigner from "./SandboxSigner.ts"

/** The state of a sandbox's chains. It can be read and set while they are served. */
export * as SandboxState from "./SandboxState.ts"

/** Deterministic pseudo-random values. The same seed and key give the same value, at any time and in any order. */
export * as Seed from "./Seed.ts"

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

/** Code and data cells of the seeded contracts: jettons as `contracts/*.tolk` stores them, metadata as TEP-64 does. */
export * as ContractCells from "./tokens/ContractCells.ts"

/** Code cells of the sandbox's jettons, as bags of cells in base64. Written by `npm run contracts` from `contracts/*.tolk`. */
export * as JettonCode from "./tokens/JettonCode.ts"

/** Serves the token chain's calls: from the seeded contracts if that is enough, otherwise from their code. */
export * as TokenAnswers from "./tokens/TokenAnswers.ts"

/** The token chain's virtual machine: accounts, messages, transactions and get methods, run by the real TVM in WebAssembly. */
export * as TokenMachine from "./tokens/TokenMachine.ts"

/** The methods of the HTTP API v2 that run contract code: accounts, get methods, messages and transactions. */
export * as TokenMethods from "./tokens/TokenMethods.ts"

/** The token chain: its contracts, and its HTTP API v2 in the dialects of both server families. */
export * as TokenServer from "./tokens/TokenServer.ts"

/** What an account sets of itself: API wallets, builders, referrals, sub-accounts, names, signers, and switches. */
export * as AccountActions from "./venue/AccountActions.ts"

/** Margin, balances, limits and fees of an account as queries and streams list them. */
export * as AccountReads from "./venue/AccountReads.ts"

/** What an action is executed with, and what executing it gives. */
export * as ActionContext from "./venue/ActionContext.ts"

/** The actions that the sandbox plays, by type: each is decoded by its schema and executed. */
export * as Actions from "./venue/Actions.ts"

/**
 * The passing of time: each second the synthetic orders are made anew, the orders that the price has reached are filled or
 * triggered, and accounts below their margin are liquidated; slices, funding and scheduled cancelations come when they are due.
 */
export * as Advance from "./venue/Advance.ts"

/** The tradable assets: the number by which orders name one, its tick and lot size, and the account of its money. */
export * as Assets from "./venue/Assets.ts"

/** The coins of the venue: how they are printed, and their prices, candles and books as functions of time. */
export * as CandleMarket from "./venue/CandleMarket.ts"

/** Decimal text and integers of its smallest step: prices in ticks, sizes in lots, amounts in millionths of a dollar or wei. */
export * as Decimals from "./venue/Decimals.ts"

/** What trades cost: rates by the volume of the fourteen days before today, a referral's discount, and a builder's share. */
export * as Fees from "./venue/Fees.ts"

/** Funding: each hour longs pay shorts the hour's rate on what their positions are worth. */
export * as Funding from "./venue/Funding.ts"

/** Positions that a test sets: as if traded with the synthetic orders, without fees and fills. */
export * as GivenPositions from "./venue/GivenPositions.ts"

/**
 * Liquidation: an account that is worth less than its maintenance margin is closed at the market, and one that is worth less
 * than two thirds of it is taken over by the house.
 */
export * as Liquidation from "./venue/Liquidation.ts"

/** The value of an account, the margin of its positions and orders, and the rest. Amounts are millionths of a dollar. */
export * as Margin from "./venue/Margin.ts"

/** Leverage, and the margin of isolated positions. */
export * as MarginActions from "./venue/MarginActions.ts"

/** Books, prices and trades as queries and streams list them. */
export * as MarketReads from "./venue/MarketReads.ts"

/** Matching by price and time. */
export * as Matching from "./venue/Matching.ts"

/** The life cycle of an order: its queue, its reservations, and its end. */
export * as OrderLife from "./venue/OrderLife.ts"

/** Orders as queries and streams list them. */
export * as OrderReads from "./venue/OrderReads.ts"

/** What an order has to obey before it is matched: steps of price and size, value, price band, triggers, and caps. */
export * as OrderRules from "./venue/OrderRules.ts"

/** Orders: placed, changed and canceled, alone and in batches. */
export * as Orders from "./venue/Orders.ts"

/** Price paths that do not follow from the seed alone: recorded bars or points of one's own, at any speed. */
export * as PricePaths from "./venue/PricePaths.ts"

/** One side of an order book: prices from the worst to the best, and at each price the orders in the order in which they came. */
export * as PriceTimeBook from "./venue/PriceTimeBook.ts"

/** The synthetic orders of a market: twenty prices on each side of the price path, made anew each second. */
export * as Quotes from "./venue/Quotes.ts"

/** What a trade does to an account: money, position or balances, fees, profit, and the fill that is listed. */
export * as Settlement from "./venue/Settlement.ts"

/** The spot tokens and pairs of the venue: a few real ones and many made-up ones, with gaps in their indexes. */
export * as SpotMetaBook from "./venue/SpotMetaBook.ts"

/** How trading is reached from outside: by actions and queries at the clock's time, by those who follow it, and by tests. */
export * as TradingControls from "./venue/TradingControls.ts"

/** What happens to accounts as streams list it: for each account, what one action or one second of prices did to it. */
export * as TradingEvents from "./venue/TradingEvents.ts"

/** What the venue remembers of trading: markets with their books, and accounts with money, positions, orders and fills. */
export * as TradingState from "./venue/TradingState.ts"

/** Money that moves: between accounts, between spot and perpetuals, between dexes and sub-accounts, into and out of the venue. */
export * as Transfers from "./venue/Transfers.ts"

/** Take-profit and stop-loss orders: what happens when the mark price reaches them. */
export * as Triggers from "./venue/Triggers.ts"

/** TWAP orders: a slice every 30 seconds, at most 3 % beyond the mark price; what a slice misses is caught up later. */
export * as Twaps from "./venue/Twaps.ts"

/** Vaults: accounts that a leader trades for, of which depositors own shares. The sandbox's leaders take no share of profits. */
export * as Vaults from "./venue/Vaults.ts"

/** The running venue: its state, its listings, its price path, and undelivered events. */
export * as Venue from "./venue/Venue.ts"

/** Queries about a user without a type: stake, signers, and the empty lists of what the sandbox does not have. */
export * as VenueAccounts from "./venue/VenueAccounts.ts"

/** How the venue serves a query of `POST /info`: the state that it reads, and the forms of its responses. */
export * as VenueAnswer from "./venue/VenueAnswer.ts"

/** Candle history of the sandbox: every closed bar since the listing of a coin, as a recorder would have taken it. */
export * as VenueArchive from "./venue/VenueArchive.ts"

/** The venue's `POST /exchange`: reads a signed action, decides on it, and responds with the venue's texts. */
export * as VenueExchange from "./venue/VenueExchange.ts"

/** Faults on purpose, between the venue and those who ask it. Which cases they hit follows from the seed. */
export * as VenueFaults from "./venue/VenueFaults.ts"

/** The venue's `POST /info`: spot metadata, candles, markets, prices and books. */
export * as VenueInfo from "./venue/VenueInfo.ts"

/** The venue's refusals, verbatim: from its documentation, its clients' tests and a catalogue of its testnet. */
export * as VenueRefusal from "./venue/VenueRefusal.ts"

/** What the venue remembers of accounts, API wallets, validators and nonces, and how a test sets it. */
export * as VenueState from "./venue/VenueState.ts"

/** Typed queries about a user: margin and balances, orders and fills, fees and limits, roles and API wallets. */
export * as VenueTrading from "./venue/VenueTrading.ts"

/** The venue's messages for refused trading. */
export * as Words from "./venue/Words.ts"
