/**
 * The venue's accounts, API wallets, validators and nonces, and the functions with which queries and tests use them.
 */
import { classifyRejection } from "@trigate/domain/actions/ActionOutcome"
import { type Address, type Hash, lowerCase } from "@trigate/domain/encoding/Encoding"
import type { ExtraAgent } from "@trigate/domain/info/Account"
import type { SpotMeta } from "@trigate/domain/info/Market"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as StrictDecoder from "../internal/StrictDecoder.ts"
import type { Seed } from "../Seed.ts"
import type { CandleMarket } from "./Assets.ts"
import type { Venue } from "./Venue.ts"
import * as VenueRefusal from "./VenueRefusal.ts"

/** Returns the map with an entry added or replaced. */
export const withEntry = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> =>
  new Map(map).set(key, value)

/** Returns the map without an entry. */
export const withoutEntry = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> =>
  new Map([...map].filter(([each]) => each !== key))

/** The rule of a multi-sig account: up to 10 existing users, and how many of these users must sign (`threshold`). */
export interface MultiSigRule {
  readonly authorizedUsers: ReadonlyArray<Address>
  readonly threshold: number
}

/** Stake that an account has delegated to one validator. */
export interface Delegation {
  /** The delegated amount, in units of 10^-8 HYPE. */
  readonly wei: bigint
  /** The end of the lockup, in milliseconds: one day after stake was last added. */
  readonly lockedUntil: number
}

/** An event that adds stake to a delegation or withdraws stake from it. */
export interface DelegationEvent {
  readonly time: number
  readonly hash: Hash
  readonly validator: Address
  /** The amount that the event adds or withdraws, in units of 10^-8 HYPE. */
  readonly wei: bigint
  readonly isUndelegate: boolean
}

/** The state of an account except its orders, positions and trading balances: for example its stake. */
export interface Account {
  /** Staking balance that is not delegated, in units of 10^-8 HYPE. */
  readonly stake: bigint
  /** Delegated stake by validator. */
  readonly delegations: ReadonlyMap<Address, Delegation>
  /** The latest events of the account's delegations, newest first. */
  readonly delegationHistory: ReadonlyArray<DelegationEvent>
  /** Named API wallets. */
  readonly extraAgents: ReadonlyArray<ExtraAgent>
  /** The unnamed API wallet. */
  readonly mainAgent?: { readonly address: Address; readonly validUntil: number } | undefined
  /** Whether EVM transactions of the account use big blocks. */
  readonly usingBigBlocks: boolean
  /** The rule of a multi-sig account; absent for any other account. */
  readonly multiSig?: MultiSigRule | undefined
  /** The leader of this vault or the master account of this sub-account; absent for any other account. */
  readonly leader?: Address
  /** Maximum number of actions that the account can send in total. */
  readonly requestLimit: number
}

/** A validator. Its signer can jail and unjail it. */
export interface Validator {
  readonly name: string
  readonly jailed: boolean
  /** Stake delegated to the validator, in units of 10^-8 HYPE. */
  readonly stake: bigint
  readonly description?: string
  /** The IP address of the validator's node. */
  readonly nodeIp?: string
  /** The account that signs for the validator. Default: the validator's own. */
  readonly signer?: Address
  /** The part of the rewards that the validator retains, in hundredths of a percent. Default: 400. */
  readonly commissionBps?: number
  /** Whether the validator accepts no new stake. */
  readonly delegationsDisabled?: boolean
  /** The validator's latest vote on the risk-free rate, as decimal text. */
  readonly riskFreeRate?: string
}

/** The venue's state except orders, positions and trading balances. All addresses are in lower case. */
export interface VenueState {
  readonly accounts: ReadonlyMap<Address, Account>
  /** The account of each API wallet, by the wallet's address. */
  readonly agents: ReadonlyMap<Address, Address>
  readonly validators: ReadonlyMap<Address, Validator>
  /**
   * The highest nonces that each signer has used, ascending. The type is a persistent (structurally shared) map, so
   * that an action does not copy all nonces.
   */
  readonly nonces: HashMap.HashMap<Address, ReadonlyArray<number>>
  /** The number of actions sent by each account. */
  readonly requests: HashMap.HashMap<Address, number>
}

/** A venue without accounts. */
export const empty: VenueState = {
  accounts: new Map(),
  agents: new Map(),
  validators: new Map(),
  nonces: HashMap.empty(),
  requests: HashMap.empty()
}

/** A new account. */
export const newAccount: Account = {
  stake: 0n,
  delegations: new Map(),
  delegationHistory: [],
  extraAgents: [],
  usingBigBlocks: false,
  requestLimit: Number.POSITIVE_INFINITY
}

/** Returns the account of an address; a new account if the venue does not know the address. */
export const accountOrNew = (state: VenueState, address: Address): Account =>
  state.accounts.get(lowerCase(address)) ?? newAccount

/** Returns the number of actions sent by an account. */
export const countRequests = ({ requests }: VenueState, address: Address): number =>
  Option.getOrElse(HashMap.get(requests, lowerCase(address)), () => 0)

/** Returns the state with changed fields of an account. Creates the account if it does not exist. */
export const changeAccount = (state: VenueState, address: Address, fields: Partial<Account>): VenueState => ({
  ...state,
  accounts: withEntry(state.accounts, lowerCase(address), { ...accountOrNew(state, address), ...fields })
})

/** Returns whether an API wallet is still valid. */
export const isValidAt = (now: number) => ({ validUntil }: { readonly validUntil: number }): boolean =>
  validUntil >= now

/** Returns the account for which an API wallet signs; `undefined` if no account has approved it, or if it has expired. */
export const findAgentUser = (state: VenueState, agent: Address, now: number): Address | undefined => {
  const user = state.agents.get(agent)
  if (user === undefined) return undefined
  const { extraAgents, mainAgent } = accountOrNew(state, user)
  const terms = mainAgent?.address === agent ? mainAgent : extraAgents.find(({ address }) => address === agent)
  return terms === undefined || isValidAt(now)(terms) ? user : undefined
}

/** Removes the expired API wallets of an account, so that their names and addresses can be used again. */
export const withoutExpiredAgents = (state: VenueState, user: Address, now: number): VenueState => {
  const { extraAgents, mainAgent } = accountOrNew(state, user)
  const known = mainAgent === undefined ? extraAgents : [...extraAgents, mainAgent]
  const isValid = isValidAt(now)
  if (known.every(isValid)) return state
  const expired = new Set(known.flatMap((agent) => isValid(agent) ? [] : [agent.address]))
  const agents = new Map([...state.agents].filter(([address]) => !expired.has(address)))
  return changeAccount({ ...state, agents }, user, {
    extraAgents: extraAgents.filter(isValid),
    mainAgent: mainAgent !== undefined && isValid(mainAgent) ? mainAgent : undefined
  })
}

const maxAuthorizedUsers = 10

/**
 * Returns the text with which the venue rejects the rule of a multi-sig account; `undefined` if the venue accepts the
 * rule.
 */
export const multiSigRefusal = (
  state: VenueState,
  address: Address,
  { authorizedUsers, threshold }: MultiSigRule
): string | undefined => {
  if (authorizedUsers.length > maxAuthorizedUsers) return VenueRefusal.tooManySigners
  if (threshold < 1 || threshold > authorizedUsers.length) return VenueRefusal.invalidThreshold
  if (authorizedUsers.includes(address)) return VenueRefusal.selfAuthorized
  return authorizedUsers.every((user) => state.accounts.has(user)) ? undefined : VenueRefusal.authorizedUserUnknown
}

/** Makes the functions that read and set a venue's state. */
export const controls = (state: Ref.Ref<VenueState>) => {
  const setAccount = (address: Address, fields: Partial<Account>): Effect.Effect<void> =>
    Ref.update(state, (venue) => changeAccount(venue, address, fields))
  return {
    /** All accounts, API wallets, validators and nonces. */
    state,
    /** Returns an account; `None` if the venue does not know the address. */
    account: (address: Address) =>
      Effect.map(Ref.get(state), ({ accounts }) => Option.fromUndefinedOr(accounts.get(lowerCase(address)))),
    /** Returns the validator at an address. */
    validator: (address: Address) =>
      Effect.map(Ref.get(state), ({ validators }) => Option.fromUndefinedOr(validators.get(lowerCase(address)))),
    /** Sets fields of an account. Creates the account if it does not exist. */
    setAccount,
    /** Adds stake, in units of 10^-8 HYPE, to an account. Creates the account if it does not exist. */
    fundAccount: (address: Address, wei: bigint) =>
      Ref.update(state, (venue) => changeAccount(venue, address, { stake: accountOrNew(venue, address).stake + wei })),
    /** Registers a validator. Creates the validator's account if it does not exist. */
    addValidator: (address: Address, validator: Omit<Validator, "stake">) =>
      Ref.update(state, (venue) => {
        const known = changeAccount(venue, address, {})
        return { ...known, validators: withEntry(known.validators, lowerCase(address), { ...validator, stake: 0n }) }
      }),
    /** Jails or unjails a validator. Does nothing if the validator does not exist. */
    setJailed: (address: Address, jailed: boolean) =>
      Ref.update(state, (venue) => {
        const validator = venue.validators.get(lowerCase(address))
        return validator === undefined
          ? venue
          : { ...venue, validators: withEntry(venue.validators, lowerCase(address), { ...validator, jailed }) }
      }),
    /** Makes an account multi-sig. Fails with `ActionRejected` if the venue would refuse the rule. */
    makeMultiSig: (address: Address, rule: MultiSigRule) => {
      const user = lowerCase(address)
      const multiSig = { ...rule, authorizedUsers: rule.authorizedUsers.map(lowerCase) }
      return Ref.modify(state, (venue) => {
        const refusal = multiSigRefusal(venue, user, multiSig)
        return [refusal, refusal === undefined ? changeAccount(venue, user, { multiSig }) : venue]
      }).pipe(
        Effect.flatMap((refusal) => refusal === undefined ? Effect.void : Effect.fail(classifyRejection(refusal)))
      )
    },
    /** Authorizes an API wallet to sign L1 actions for an account. */
    approveAgent: (agent: Address, account: Address) =>
      Ref.update(
        state,
        (venue) => ({ ...venue, agents: withEntry(venue.agents, lowerCase(agent), lowerCase(account)) })
      ),
    /** Registers a vault or a sub-account, with the account that leads it. */
    addVault: (vault: Address, leader: Address) => setAccount(vault, { leader: lowerCase(leader) }),
    /** Sets whether an account uses big EVM blocks. */
    setBigBlocks: (address: Address, usingBigBlocks: boolean) => setAccount(address, { usingBigBlocks }),
    /** Limits the number of actions that an account can send in total. Default: no limit. */
    limitRequests: (address: Address, requestLimit: number) => setAccount(address, { requestLimit })
  }
}

/** Reads and sets the state of the venue. Addresses can have any letter case. */
export type VenueControls = ReturnType<typeof controls>

/** The data from which `POST /info` is served. */
export interface InfoState {
  readonly spotMeta: SpotMeta
  /** Coins with candles, by name. */
  readonly markets: ReadonlyMap<string, CandleMarket>
}

/** The data that a query reads, and the time of the query. */
export interface Listing extends InfoState {
  readonly seed: Seed
  readonly now: number
}

/** The state that a query reads: the listing, the venue's accounts, and the trading state at the time of the query. */
export interface InfoView extends Listing {
  readonly venue: VenueState
  readonly trading: Venue
}

const upstream = "trading-api"

/**
 * Makes the response with the result of a query. If the result is `undefined` because a name is unknown, the response
 * is HTTP 500 `null`, like the venue's.
 */
export const known = (value: unknown): Operation.UpstreamResponse =>
  value === undefined
    ? Operation.json(upstream, 500, "null")
    : Predicate.isObjectOrArray(value)
    ? Operation.jsonValue(upstream, 200, value)
    : Operation.json(upstream, 200, JSON.stringify(value))

/** Makes the response to a query that the venue cannot decode. */
export const wrongShape = (why = ""): Operation.UpstreamResponse =>
  Operation.plain(upstream, 422, `${VenueRefusal.wrongShape}${why}`)

/** The response to a body that is not JSON. */
export const notJson = Operation.plain(upstream, 400, VenueRefusal.notJson)

/** Serves a typed query. `members` are the members of the parsed body except `type`. */
export type QueryHandler = (view: InfoView, members: unknown) => Operation.UpstreamResponse

/**
 * Makes the handler of an operation. The handler decodes the request before it responds, and refuses members that the
 * operation does not declare. `accepts` returns whether the sandbox supports a request. Default: all requests are
 * supported.
 */
export const on = <Request extends Operation.AnyCodec, Response extends Operation.AnyCodec>(
  { name, request }: Operation.Operation<string, "read", Request, Response>,
  answer: (view: InfoView, request: Request["Type"]) => Response["Encoded"] | undefined,
  accepts: (request: Request["Type"]) => boolean = () => true
): QueryHandler => {
  const decode = StrictDecoder.makeTransformed(request)
  return (view, members) =>
    Result.match(decode(members), {
      onFailure: (unread) => wrongShape(StrictDecoder.formatUnread(unread, name)),
      onSuccess: (request) => accepts(request) ? known(answer(view, request)) : wrongShape()
    })
}
