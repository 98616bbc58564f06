/**
 * Every module of `@trigate/sandbox` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/sandbox/…`: Node then loads only those.
 */

/** The initial state of every sandbox. `SandboxExamples` names its contents. */
export * as Genesis from "./Genesis.ts"

/** A venue, a token chain and a layer 2 in memory, behind the same services as the live ones. */
export * as Sandbox from "./Sandbox.ts"

/** The initial content of every sandbox, whatever its seed: a working example for each documented call. */
export * as SandboxExamples from "./SandboxExamples.ts"

/** The settings of a sandbox. They apply if no upstream URL is set. */
export * as SandboxSettings from "./SandboxSettings.ts"

/** Signs typed data of actions with test keys, as a wallet does. */
export * as SandboxSigner from "./SandboxSigner.ts"

/** The state of a sandbox's chains. It can be read and set while the chains are served. */
export * as SandboxState from "./SandboxState.ts"

/** Deterministic pseudo-random values. The same seed and key yield the same value, at any time and in any order. */
export * as Seed from "./Seed.ts"

/** The parts that the sandbox's two EVM chains share: blocks by the clock, accounts, transactions. */
export * as EvmChain from "./evm/EvmChain.ts"

/** Code of the initial contracts of the sandbox's EVM chains. */
export * as EvmContracts from "./evm/EvmContracts.ts"

/** Runs EVM code with `@ethereumjs/vm`. */
export * as EvmMachine from "./evm/EvmMachine.ts"

/** A node of a sandbox's EVM chain: the standard JSON-RPC methods. */
export * as EvmNode from "./evm/EvmNode.ts"

/** Accepts signed transactions on a sandbox's EVM chain, or refuses them with the messages of common nodes. */
export * as EvmSubmission from "./evm/EvmSubmission.ts"

/** Encodes blocks, transactions, receipts and logs of a sandbox's EVM chain as a node does. */
export * as EvmWire from "./evm/EvmWire.ts"

/** The state of a sandbox's EVM chain: an immutable value, so that storing the state after each block costs little. */
export * as EvmWorld from "./evm/EvmWorld.ts"

/** A layer 2: a block every two seconds, receipts of several chain families, and delayed finality. */
export * as Layer2Chain from "./evm/Layer2Chain.ts"

/** The trading chain's EVM: a block a second, gas prices of small and big blocks, and the big-block flags. */
export * as VenueEvm from "./evm/VenueEvm.ts"

/** The venue's data for the sandbox's streams: the state of markets and accounts, and the events of accounts. */
export * as VenueFeed from "./streams/VenueFeed.ts"

/** The sandbox's streams: each subscription is derived from the venue's queries, at the venue's frame rate. */
export * as VenueStreams from "./streams/VenueStreams.ts"

/** Makes the code and data cells of the seeded contracts: jettons in the layout of `contracts/*.tolk`, metadata as in TEP-64. */
export * as ContractCells from "./tokens/ContractCells.ts"

/** Code cells of the sandbox's jettons, as bags of cells in base64. Written by `npm run contracts` from `contracts/*.tolk`. */
export * as JettonCode from "./tokens/JettonCode.ts"

/** Serves the token chain's calls from the seeded contracts if possible, otherwise by running their code. */
export * as TokenAnswers from "./tokens/TokenAnswers.ts"

/** The token chain's virtual machine: accounts, messages, transactions and get methods, run by the real TVM in WebAssembly. */
export * as TokenMachine from "./tokens/TokenMachine.ts"

/** The methods of the HTTP API v2 that run contract code: accounts, get methods, messages and transactions. */
export * as TokenMethods from "./tokens/TokenMethods.ts"

/** The token chain: its contracts, and its HTTP API v2 in the formats of both server families. */
export * as TokenServer from "./tokens/TokenServer.ts"

/** Account settings: API wallets, builders, referrals, sub-accounts, names, signers, and flags. */
export * as AccountActions from "./venue/AccountActions.ts"

/** Margin, balances, limits and fees of an account as queries and streams list them. */
export * as AccountReads from "./venue/AccountReads.ts"

/** The context and the result of executing an action. */
export * as ActionContext from "./venue/ActionContext.ts"

/** The actions that the sandbox supports, by type: each is decoded by its schema and executed. */
export * as Actions from "./venue/Actions.ts"

/**
 * Advances the venue's time. Each second, the synthetic orders are renewed, orders that the price has reached are
 * filled or triggered, and accounts below their margin are liquidated. TWAP slices, funding and scheduled cancellations
 * are executed when they are due.
 */
export * as Advance from "./venue/Advance.ts"

/** The tradable assets: their numbers in orders, tick and lot sizes, and balances. */
export * as Assets from "./venue/Assets.ts"

/** The coins of the venue: their number formats, and their prices, candles and books as functions of time. */
export * as CandleMarket from "./venue/CandleMarket.ts"

/**
 * Converts between decimal text and integers of its smallest unit: prices in ticks, sizes in lots, amounts in millionths of a
 * dollar or wei.
 */
export * as Decimals from "./venue/Decimals.ts"

/** Trading fees: rates by the volume of the fourteen days before today, a referral's discount, and a builder fee. */
export * as Fees from "./venue/Fees.ts"

/** Funding: every hour longs pay shorts the hourly rate on the value of their positions. */
export * as Funding from "./venue/Funding.ts"

/** Sets positions for tests, as if traded with the synthetic orders, without fees and fills. */
export * as GivenPositions from "./venue/GivenPositions.ts"

/**
 * Liquidation: an account below its maintenance margin is closed at the market. If it is below two thirds of that
 * margin, the house takes it over.
 */
export * as Liquidation from "./venue/Liquidation.ts"

/** The value of an account, the margin of its positions and orders, and the remaining balance. Amounts are millionths of a dollar. */
export * as Margin from "./venue/Margin.ts"

/** Leverage, and the margin of isolated positions. */
export * as MarginActions from "./venue/MarginActions.ts"

/** Books, prices and trades as queries and streams list them. */
export * as MarketReads from "./venue/MarketReads.ts"

/** Matching by price-time priority. */
export * as Matching from "./venue/Matching.ts"

/** The life cycle of an order: its queue, its reservations, and its end. */
export * as OrderLife from "./venue/OrderLife.ts"

/** Encodes orders for queries and streams. */
export * as OrderReads from "./venue/OrderReads.ts"

/** Checks an order before it is matched: tick and lot size, minimum value, price band, triggers, and caps. */
export * as OrderRules from "./venue/OrderRules.ts"

/** Places, modifies and cancels orders, individually and in batches. */
export * as Orders from "./venue/Orders.ts"

/** Price paths that override the seeded ones: recorded bars or custom points, at any speed. */
export * as PricePaths from "./venue/PricePaths.ts"

/** One side of an order book: prices from the worst to the best, and the orders at each price in order of arrival. */
export * as PriceTimeBook from "./venue/PriceTimeBook.ts"

/** The synthetic orders of a market: twenty prices on each side of the price path, renewed each second. */
export * as Quotes from "./venue/Quotes.ts"

/** Settles a trade for an account: money, position or balances, fees, profit, and the fill in its list. */
export * as Settlement from "./venue/Settlement.ts"

/** The spot tokens and pairs of the venue: a few real ones and many generated ones, with gaps in their indexes. */
export * as SpotMetaBook from "./venue/SpotMetaBook.ts"

/** The interface of trading: for actions and queries at the clock's time, for followers, and for tests. */
export * as TradingControls from "./venue/TradingControls.ts"

/** Converts the venue's events to account events for streams: one event for each account per action or per second. */
export * as TradingEvents from "./venue/TradingEvents.ts"

/** The state of trading: markets with their books, and accounts with money, positions, orders and fills. */
export * as TradingState from "./venue/TradingState.ts"

/** Transfers: between accounts, between spot and perpetuals, between dexes and sub-accounts, into and out of the venue. */
export * as Transfers from "./venue/Transfers.ts"

/** Take-profit and stop-loss orders, which are triggered by the mark price. */
export * as Triggers from "./venue/Triggers.ts"

/**
 * TWAP orders: a slice every 30 seconds, at most 3 % beyond the mark price. The unfilled part of a slice is added to
 * later ones.
 */
export * as Twaps from "./venue/Twaps.ts"

/**
 * Vaults: accounts for which a leader trades, and of which depositors own shares. In the sandbox, leaders receive no
 * share of profits.
 */
export * as Vaults from "./venue/Vaults.ts"

/** The running venue: its state, its listings, its price path, and undelivered events. */
export * as Venue from "./venue/Venue.ts"

/** Untyped queries about a user: stake, signers, and empty lists for features that the sandbox does not have. */
export * as VenueAccounts from "./venue/VenueAccounts.ts"

/** The state for queries of `POST /info`, and the forms of responses. */
export * as VenueAnswer from "./venue/VenueAnswer.ts"

/** Candle history of the sandbox: every closed bar since the listing of a coin, as if recorded. */
export * as VenueArchive from "./venue/VenueArchive.ts"

/** The venue's `POST /exchange`: decodes a signed action, executes it, and responds with the venue's texts. */
export * as VenueExchange from "./venue/VenueExchange.ts"

/** Injects faults between the venue and its callers. The seed determines which requests they affect. */
export * as VenueFaults from "./venue/VenueFaults.ts"

/** The venue's `POST /info`: spot metadata, candles, markets, prices and books. */
export * as VenueInfo from "./venue/VenueInfo.ts"

/** The venue's refusals, verbatim: from its documentation, its clients' tests and a catalogue of its testnet. */
export * as VenueRefusal from "./venue/VenueRefusal.ts"

/** The venue's accounts, API wallets, validators and nonces, and the controls for tests. */
export * as VenueState from "./venue/VenueState.ts"

/** Typed queries about a user: margin and balances, orders and fills, fees and limits, roles and API wallets. */
export * as VenueTrading from "./venue/VenueTrading.ts"

/** The venue's messages for refused trading actions. */
export * as Words from "./venue/Words.ts"
