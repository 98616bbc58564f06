/** The trading state of an account: its money, positions, orders, TWAP orders, fills and ledger. */
import type { TimeInForce } from "@trigate/domain/actions/ActionSchemas"
import type { Address, Hash } from "@trigate/domain/encoding/Hex"
import type { Fill } from "@trigate/domain/info/Order"

/** An order. `px` is in ticks, sizes are in lots. */
export interface VenueOrder {
  readonly oid: number
  readonly user: Address
  readonly coin: string
  readonly isBuy: boolean
  px: bigint
  readonly origSz: bigint
  /** The unfilled size. */
  sz: bigint
  readonly reduceOnly: boolean
  tif: TimeInForce | null
  readonly cloid: string | null
  readonly timestamp: number
  readonly trigger?: { readonly px: bigint; readonly isMarket: boolean; readonly tpsl: "tp" | "sl" }
  /**
   * Whether the order applies to the whole position. If so, the order's size is set when the order is triggered, and
   * the order ends when the position is closed.
   */
  readonly isPositionTpsl: boolean
  readonly builder?: { readonly address: Address; readonly tenthsOfBp: bigint }
  /** The rate of the order's priority fee, in units of 10^-8. */
  readonly priority?: number
  /** Orders that wait until this order is filled. */
  children: ReadonlyArray<VenueOrder>
  /** For a child order: the ID of the order whose fill it waits or waited for. */
  parent?: number
  /**
   * The IDs of the order's siblings: a group of orders, such as take-profit and stop-loss, of which only one can be
   * filled.
   */
  siblings: ReadonlyArray<number>
  /**
   * The queue that contains the order: the order book, the triggers, or the child orders of a parent order. `gone`: the
   * order is in no queue.
   */
  place: "book" | "trigger" | "parent" | "gone"
  /** The venue's status: `open`, `filled`, `canceled`, … */
  status: string
  statusTimestamp: number
  readonly twapId?: number
}

/** An empty list for orders without children or siblings. It is shared, so that an order does not allocate an array. */
export const none: ReadonlyArray<never> = []

/** A position in a perpetual. */
export interface Position {
  /** Size in lots; negative for a short position. */
  size: bigint
  /** The cost of the position, in millionths of a dollar. It is positive also for a short position. */
  entry: bigint
  readonly isCross: boolean
  leverage: number
  /** For an isolated position: the assigned margin minus the position's cost, in millionths of a dollar. */
  raw: bigint
  /** Funding paid by the position, in millionths of a dollar. */
  readonly funding: { allTime: bigint; sinceOpen: bigint; sinceChange: bigint }
}

/** The money and positions of an account in the perpetuals of a dex. */
export interface Clearing {
  /** Cash in millionths of a dollar. The cost of all cross positions is deducted. */
  cash: bigint
  readonly positions: Map<string, Position>
}

/** A balance in a spot token, in the token's wei. */
export interface SpotBalance {
  total: bigint
  /** The part of the balance that is reserved for open orders. */
  hold: bigint
  /** The acquisition cost of the balance, in wei of USDC. */
  entry: bigint
}

/** A TWAP order. */
export interface Twap {
  readonly id: number
  readonly user: Address
  readonly coin: string
  readonly isBuy: boolean
  readonly sz: bigint
  readonly reduceOnly: boolean
  readonly minutes: number
  readonly randomize: boolean
  /** The price above (or below) which the order starts; absent for an order that starts when it is placed. */
  readonly trigger?: { readonly px: bigint; readonly isAbove: boolean }
  /** The price at which the order ends: above it if the order buys, below it if the order sells. */
  readonly stopPx?: bigint
  /** The time at which the order was placed or, if it has a trigger, was triggered. */
  startedAt: number
  executedSz: bigint
  /** Executed value, in ticks times lots. */
  executedNtl: bigint
  slices: number
  status: { readonly status: "waitingForTrigger" | "activated" | "stopped" | "terminated" | "finished" } | {
    readonly status: "error"
    readonly description: string
  }
  endedAt: number | undefined
}

/** A fill of a TWAP order. */
export interface TwapFill {
  readonly fill: Fill
  readonly twapId: number
}

/** An entry of an account's ledger, such as a deposit or a transfer. Funding payments are stored separately. */
export interface LedgerEntry {
  readonly time: number
  readonly hash: Hash
  readonly delta: { readonly type: string; readonly [member: string]: unknown }
}

/** A funding payment of an account. */
export interface FundingEntry {
  readonly time: number
  readonly coin: string
  readonly usdc: string
  readonly szi: string
  readonly fundingRate: string
}

/** The traded volume of a day, in millionths of a dollar. */
export interface DayVolume {
  cross: bigint
  add: bigint
}

/** The value of an account at a time, in millionths of a dollar. */
export interface AccountValue {
  readonly time: number
  /** The value in perpetuals on all dexes. */
  readonly perps: bigint
  /** `perps` and the spot USDC. */
  readonly all: bigint
  /** The profit in perpetuals since the account exists. */
  readonly profit: bigint
}

/** The trading state of an account, such as its money, positions, orders and fills. */
export interface TradingAccount {
  readonly address: Address
  /** The account's money and positions in perpetuals, by dex; the key `""` is the venue's own dex. */
  readonly clearings: Map<string, Clearing>
  readonly spot: Map<number, SpotBalance>
  readonly leverage: Map<string, { readonly isCross: boolean; readonly value: number }>
  /** The open orders, in a book or waiting for their trigger, oldest first. */
  readonly open: Map<number, VenueOrder>
  /** The total lots of the account's open bids and asks, by coin. Reduce-only orders are not counted. */
  readonly exposure: Map<string, { bids: bigint; asks: bigint }>
  /** The newest orders of the account, in order of placement. */
  readonly orders: Map<number, VenueOrder>
  readonly byCloid: Map<string, number>
  /** Fills, newest last. */
  readonly fills: Array<Fill>
  readonly twapFills: Array<TwapFill>
  readonly fundings: Array<FundingEntry>
  readonly ledger: Array<LedgerEntry>
  /** The account's value at each full hour, newest last. */
  readonly values: Array<AccountValue>
  /** Deposits into the account's perpetuals minus withdrawals, in millionths of a dollar, transfers included. */
  deposited: bigint
  readonly twaps: Map<number, Twap>
  /** Traded volumes, by the first millisecond of the day. */
  readonly volumes: Map<number, DayVolume>
  /**
   * The volume of each day that counts toward the fee tier: spot counts twice, and an asset in growth mode a tenth. A
   * sub-account has the map of its master account, because they have one tier.
   */
  tierVolumes: Map<number, bigint>
  /** The total traded volume, in millionths of a dollar. */
  volume: bigint
  cancelAt: number | undefined
  /** The maximum fee that the account has approved for each builder, in tenths of a basis point. */
  readonly builders: Map<Address, bigint>
  referrer: { readonly code: string; readonly address: Address } | undefined
  code: string | undefined
  displayName: string | undefined
  /** Claimable rewards from referrals, in millionths of a dollar. Rewards already paid out are in `claimed`. */
  rewards: bigint
  /** Claimable builder fees, in millionths of a dollar. */
  builderRewards: bigint
  claimed: bigint
  /** The number of requests bought with `reserveRequestWeight`. */
  reserved: number
  abstraction: "default" | "disabled" | "unifiedAccount" | "portfolioMargin" | "dexAbstraction"
  optedOutOfDusting: boolean
  subAccount: { readonly master: Address; readonly name: string } | undefined
  /** Pending withdrawals from staking to spot: the amount in wei of HYPE, and the time of arrival. */
  unstaking: ReadonlyArray<{ readonly wei: bigint; readonly at: number }>
  /** The account that is linked to this one for staking, and whether both accounts have accepted the link. */
  stakingLink: { readonly user: Address; readonly isFinal: boolean } | undefined
}

/** Makes an account without money. */
export const make = (address: Address): TradingAccount => ({
  address,
  clearings: new Map(),
  spot: new Map(),
  leverage: new Map(),
  open: new Map(),
  exposure: new Map(),
  orders: new Map(),
  byCloid: new Map(),
  fills: [],
  twapFills: [],
  fundings: [],
  ledger: [],
  values: [],
  deposited: 0n,
  twaps: new Map(),
  volumes: new Map(),
  tierVolumes: new Map(),
  volume: 0n,
  cancelAt: undefined,
  builders: new Map(),
  referrer: undefined,
  code: undefined,
  displayName: undefined,
  rewards: 0n,
  builderRewards: 0n,
  claimed: 0n,
  reserved: 0,
  abstraction: "default",
  optedOutOfDusting: false,
  subAccount: undefined,
  unstaking: [],
  stakingLink: undefined
})

/** Returns an account's cash and positions in a dex; creates an empty entry on first use. */
export const ensureClearing = ({ clearings }: TradingAccount, dex: string): Clearing => {
  const known = clearings.get(dex)
  if (known !== undefined) return known
  const made: Clearing = { cash: 0n, positions: new Map() }
  clearings.set(dex, made)
  return made
}

/** Returns an account's balance in a spot token; creates an empty balance on first use. */
export const ensureBalance = ({ spot }: TradingAccount, token: number): SpotBalance => {
  const known = spot.get(token)
  if (known !== undefined) return known
  const made: SpotBalance = { total: 0n, hold: 0n, entry: 0n }
  spot.set(token, made)
  return made
}
