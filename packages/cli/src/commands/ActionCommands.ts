/**
 * The commands that send signed actions: `trigate delegate`, `undelegate`, `big-blocks`, `order`, `cancel` and
 * `multisig`.
 */
import * as Info from "@trigate/client/Info"
import type { AnySignedAction } from "@trigate/domain/actions/Action"
import { type Address, openStruct, parseStrict } from "@trigate/domain/encoding/Encoding"
import { type Asset, unknownAsset } from "@trigate/domain/info/Market"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import { stakeAction } from "@trigate/signing/actions/ActionBuilder"
import type * as OrderAction from "@trigate/signing/actions/OrderAction"
import * as Hype from "@trigate/signing/Decimal"
import * as MultiSigProposal from "@trigate/signing/multisig/MultiSigProposal"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Orders from "@trigate/signing/Orders"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import { profileFor, Venue, type VenueProfile } from "@trigate/signing/VenueProfile"
import * as BodyNormalization from "@trigate/trading/unstable/admission/ActionDecoder"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Input from "../Output.ts"
import * as SignedSending from "../SignedSending.ts"

/** An action to sign: the body for a nonce, and a description of its effect ("delegates 1.5 HYPE"). */
export interface Unsigned {
  readonly body: (nonce: number) => Effect.Effect<AnySignedAction, ActionBuilder.BuildFailure, Signer.Signer | Venue>
  readonly does: string
}

/** Signs an action with a new nonce. */
export const sign = Effect.fnUntraced(function*(
  { body, does }: Unsigned,
  signer: Signer.Signer["Service"],
  network: VenueProfile["name"]
) {
  const signed = yield* Orders.signNext(body).pipe(
    Effect.provideService(Signer.Signer, signer),
    Effect.provideService(Venue, profileFor(network))
  )
  return {
    body: signed,
    signer: signer.address,
    says: [`On ${network}, ${signer.address} ${does}, nonce ${signed.nonce}.`]
  }
})

/** Signs the action that `prepare` returns, with a new nonce, and sends it once. */
export const signAndSend = <E, R>(
  options: SignedSending.Options,
  prepare: (signer: Signer.Signer["Service"]) => Effect.Effect<Unsigned, E, R>
) =>
  SignedSending.run(
    options,
    (signer) => Effect.flatMap(prepare(signer), (unsigned) => sign(unsigned, signer, options.network))
  )

/** Provides nonces and signatures. Each call returns a new layer with a separate `NonceSource`. */
export const layer = () => Layer.merge(Secp256k1.layer, NonceSource.layerMemory())

/** The arguments of a command that moves stake. */
export const stakeArguments = {
  validator: Input.address("validator").pipe(Argument.withDescription("Validator: 20 bytes in hex")),
  wei: Argument.String("amount").pipe(
    Argument.filterMap(
      (text) => Option.filter(Result.getSuccess(Hype.weiFromHype(text)), (wei) => wei > 0n),
      () => "an amount of HYPE above 0 with up to 8 decimals, such as 1.5"
    ),
    Argument.withDescription("HYPE with up to 8 decimals: 1.5 is 150000000 wei")
  )
}

const stakeCommand = (
  name: "delegate" | "undelegate",
  description: string,
  does: (amount: string, validator: string) => string
) => {
  const build = name === "delegate" ? ActionBuilder.delegate : ActionBuilder.undelegate
  const example = `trigate ${name} 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 1.5`
  return Command.make(
    name,
    { ...stakeArguments, network: Input.network, ...SignedSending.flags },
    ({ validator, wei, ...options }) =>
      signAndSend(options, () =>
        Effect.succeed({
          body: (nonce) => build({ validator, wei, nonce }),
          does: does(`${Hype.hypeFromWei(wei)} HYPE (${wei} wei)`, validator)
        }))
  ).pipe(
    Command.withDescription(description),
    Command.withExamples([
      { command: `${example} --key-file key.txt` },
      {
        command: `${example} --dry-run > body.json`,
        description: "Sign with the key in TRIGATE_PRIVATE_KEY and send nothing"
      }
    ]),
    Command.provide(layer),
    GatewayAccess.options
  )
}

/** `trigate delegate`. */
export const delegate = stakeCommand(
  "delegate",
  "Delegate stake to a validator",
  (amount, validator) => `delegates ${amount} to the validator ${validator}`
)

/** `trigate undelegate`. */
export const undelegate = stakeCommand(
  "undelegate",
  "Undelegate stake from a validator, one day after the delegation at the earliest",
  (amount, validator) => `undelegates ${amount} from the validator ${validator}`
)

/** `on` or `off`. */
export const stateArgument = Argument.Literals("state", ["on", "off"]).pipe(
  Argument.withDescription("on: big blocks (one per minute, 30M gas); off: small blocks (one per second, 3M gas)")
)

/** `trigate big-blocks`. */
export const bigBlocks = Command.make(
  "big-blocks",
  { state: stateArgument, network: Input.network, ...SignedSending.flags },
  ({ state, ...options }) => {
    const build = state === "on" ? ActionBuilder.useBigBlocks : ActionBuilder.useSmallBlocks
    return signAndSend(options, () =>
      Effect.succeed({
        body: (nonce) => build({ nonce }),
        does: `chooses ${state === "on" ? "big" : "small"} blocks for its EVM transactions`
      }))
  }
).pipe(
  Command.withDescription(
    "Send an account's EVM transactions to big or small blocks, until the setting is changed again"
  ),
  Command.withExamples([{ command: "trigate big-blocks on --key-file key.txt" }]),
  Command.provide(layer),
  GatewayAccess.options
)

const plain = /^[0-9]{1,24}(?:\.[0-9]{1,24})?$/u

/** Reads a plain decimal above 0, without redundant zeros. */
export const positive = (text: string): Option.Option<string> =>
  plain.test(text) && /[1-9]/u.test(text) ? Option.fromUndefinedOr(Hype.canonical(text)) : Option.none()

/** Describes what {@link positive} reads. */
export const expectedPositive = () => "a plain decimal above 0, such as 0.01"

const cloid = /^0x[0-9a-fA-F]{32}$/u

const isCloid = (text: string): text is OrderAction.Cloid => cloid.test(text)

const timesInForce = { gtc: "Gtc", ioc: "Ioc", alo: "Alo" } as const

/** Maximum slippage of a market order from the mid price, in percent. */
export const maxSlippage = 50

/** Reads the mid price of an asset. Fails with `UnknownAsset` if the venue has no price for it. */
export const readMid = Effect.fnUntraced(function*({ coin }: Asset) {
  const dex = coin.includes(":") ? { dex: coin.slice(0, coin.indexOf(":")) } : {}
  const mids = yield* GatewayAccess.send(Info.allMids(dex))
  return yield* Effect.fromOption(Option.fromUndefinedOr(mids[coin]), () => unknownAsset(coin, Object.keys(mids)))
})

/** An order as its sender describes it: a limit order with `price`, otherwise a market order. */
export interface OrderTerms {
  readonly side: "buy" | "sell"
  readonly size: string
  readonly coin: string
  readonly price: Option.Option<string>
  readonly tif: Option.Option<keyof typeof timesInForce>
  /** The maximum slippage of a market order in percent. Default: 5. */
  readonly slippage: Option.Option<number>
  readonly reduceOnly: boolean
  readonly cloid: Option.Option<OrderAction.Cloid>
}

/** Makes the action of an order, with its asset, its cloid, and the limit of its price. */
export const prepareOrder = Effect.fnUntraced(function*(
  { cloid, coin, price, reduceOnly, side, size, slippage, tif }: OrderTerms
) {
  const asset = yield* GatewayAccess.send(Info.asset(coin))
  if (Hype.atMostPlaces(size, asset.szDecimals) !== size) {
    return yield* Input.fault(
      `${size} has too many decimal places: sizes of ${coin} have at most ${asset.szDecimals}`
    )
  }
  const ownId = yield* Option.match(cloid, { onNone: () => Orders.newCloid, onSome: Effect.succeed })
  const shared = { asset: asset.id, side, sizeInBase: size, reduceOnly, cloid: ownId }
  const verb = `${side === "buy" ? "buys" : "sells"} ${size} ${coin}${reduceOnly ? ", reduce only," : ""}`
  const place = (order: OrderAction.Order, terms: string) => ({
    asset,
    cloid: ownId,
    limit: order.priceInQuote,
    body: (nonce: number, expiresAfter?: number) =>
      ActionBuilder.placeOrders({ orders: [order] }, { nonce, expiresAfter }),
    does: `${verb} ${terms}, cloid ${ownId}`
  })
  if (Option.isSome(price)) {
    const timeInForce = timesInForce[Option.getOrElse(tif, () => "gtc" as const)]
    return place({ ...shared, priceInQuote: price.value, timeInForce }, `at ${price.value} (${timeInForce})`)
  }
  const mid = yield* readMid(asset)
  const percent = Option.getOrElse(slippage, () => 5)
  return place(
    { ...shared, ...Orders.marketTerms(mid, side, percent, asset) },
    `at the market price, now ${mid}, with at most ${percent} % slippage`
  )
})

/** `trigate order`. */
export const order = Command.make(
  "order",
  {
    side: Argument.Literals("side", ["buy", "sell"]).pipe(Argument.withDescription("buy or sell")),
    size: Argument.String("size").pipe(
      Argument.filterMap(positive, expectedPositive),
      Argument.withDescription("Size in the coin: 0.01")
    ),
    coin: SignedSending.coin,
    price: Flag.String("price").pipe(
      Flag.withMetavar("price"),
      Flag.filterMap(positive, expectedPositive),
      Flag.optional,
      Flag.withDescription(
        "Limit price; without it the order is a market order, whose unfilled part is cancelled"
      )
    ),
    tif: Flag.Literals("tif", ["gtc", "ioc", "alo"]).pipe(
      Flag.optional,
      Flag.withDescription(
        "With --price: gtc rests until it is cancelled (default), ioc is filled at once or cancelled, alo only rests"
      )
    ),
    slippage: Flag.String("slippage").pipe(
      Flag.withMetavar("percent"),
      Flag.filterMap(
        (text) => Option.filter(Option.map(positive(text), Number), (percent) => percent <= maxSlippage),
        () => `a percentage above 0, up to ${maxSlippage}`
      ),
      Flag.optional,
      Flag.withDescription("Without --price: maximum slippage from the mid price, in percent (default: 5)")
    ),
    reduceOnly: Input.booleanFlag("reduce-only", "Only reduce a position, never open or reverse one"),
    cloid: Flag.String("cloid").pipe(
      Flag.withMetavar("hex"),
      Flag.filterMap(Option.liftPredicate(isCloid), () => "16 bytes in hex, 0x first"),
      Flag.optional,
      Flag.withDescription("Client order id, 16 bytes in hex (default: a random one)")
    ),
    network: Input.network,
    ...SignedSending.flags
  },
  Effect.fnUntraced(function*({ cloid, coin, price, reduceOnly, side, size, slippage, tif, ...options }) {
    if (Option.isSome(price) && Option.isSome(slippage)) {
      return yield* Input.fault("--slippage is for market orders; omit it with --price")
    }
    if (Option.isNone(price) && Option.isSome(tif)) {
      return yield* Input.fault("--tif requires --price: a market order never rests on the book")
    }
    return yield* signAndSend(
      options,
      () => prepareOrder({ cloid, coin, price, reduceOnly, side, size, slippage, tif })
    )
  })
).pipe(
  Command.withDescription(
    "Place a limit order or a market order, signed with your key. Prints the order and its destination, asks for confirmation " +
      "unless the venue is a sandbox, and sends the order once. If the response is lost, the cloid identifies the order: see trigate actions list"
  ),
  Command.withShortDescription("Place a limit order or a market order"),
  Command.withExamples([
    { command: "trigate order buy 0.01 BTC --price 50000 --key-file key.txt" },
    { command: "trigate order sell 0.5 ETH --reduce-only --slippage 1", description: "A market order" }
  ]),
  Command.provide(layer),
  GatewayAccess.options
)

/** No open order of the account has the given ID. */
export class NoOpenOrder extends Schema.TaggedError<NoOpenOrder>()("NoOpenOrder", {
  id: Schema.String,
  account: Schema.String
}) {
  override get message() {
    return this.id === ""
      ? `${this.account} has no open orders; nothing was sent`
      : `${this.account} has no open order ${this.id}; nothing was sent. To list the open orders, run trigate positions ${this.account}`
  }
}

const orderId = /^[1-9][0-9]{0,15}$/u

/** Maximum number of orders that one action cancels. */
const maxCancels = 1000

/**
 * Returns the open orders with the given IDs, on any of the dexes. Without IDs, returns up to {@link maxCancels} open
 * orders.
 */
const ordersToCancel = Effect.fnUntraced(function*(
  account: Address,
  dexes: ReadonlyArray<string>,
  ids: ReadonlyArray<string>
) {
  const open = (yield* GatewayAccess.send(
    Effect.forEach(dexes, (dex) => Info.openOrders({ user: account, ...SignedSending.inDex(dex) }), { concurrency: 4 })
  )).flat()
  if (ids.length === 0) {
    return open.length === 0 ? yield* new NoOpenOrder({ id: "", account }) : open.slice(0, maxCancels)
  }
  return yield* Effect.forEach(ids, (id) =>
    Effect.fromOption(
      Option.fromUndefinedOr(open.find(({ cloid, oid }) => String(oid) === id || cloid === id.toLowerCase())),
      () => new NoOpenOrder({ id, account })
    ))
})

/** Makes the action that cancels the open orders with the given IDs; without IDs, up to {@link maxCancels} open orders. */
export const prepareCancel = Effect.fnUntraced(function*(
  account: Address,
  dexes: ReadonlyArray<string>,
  ids: ReadonlyArray<string>
) {
  const orders = yield* ordersToCancel(account, dexes, ids)
  const assets = new Map(
    yield* Effect.forEach(
      new Set(orders.map(({ coin }) => coin)),
      (coin) => Effect.map(GatewayAccess.send(Info.asset(coin)), ({ id }) => [coin, id] as const)
    )
  )
  const cancels = orders.map(({ coin, oid }) => ({ asset: assets.get(coin) ?? 0, orderId: oid }))
  const named = orders.map(({ coin, limitPx, oid, side, sz }) =>
    `${oid} (${side === "B" ? "buy" : "sell"} ${sz} ${coin} at ${limitPx})`
  )
  return {
    orders,
    body: (nonce: number) => ActionBuilder.cancelOrders(cancels, { nonce }),
    does: `cancels ${orders.length === 1 ? "the order" : `${orders.length} orders:`} ${named.join(", ")}`
  }
})

/** `trigate cancel`. */
export const cancel = Command.make(
  "cancel",
  {
    ids: Argument.String("id").pipe(
      Argument.filter((id) => orderId.test(id) || isCloid(id), () => "an order id, or a cloid: 16 bytes in hex"),
      Argument.withDescription("IDs or cloids of the orders, as printed by trigate positions"),
      Argument.variadic({ max: maxCancels })
    ),
    all: Input.booleanFlag("all", "Cancel every open order, on every dex"),
    dex: SignedSending.dexFlag("all, and the venue's own"),
    network: Input.network,
    ...SignedSending.flags
  },
  Effect.fnUntraced(function*({ all, dex, ids, ...options }) {
    if (all === ids.length > 0) {
      return yield* Input.fault("Name the orders to cancel, or use --all for every open order")
    }
    return yield* signAndSend(
      options,
      Effect.fnUntraced(function*({ address }) {
        const account = yield* SignedSending.ofSigner(address)
        return yield* prepareCancel(account, yield* SignedSending.dexes(dex), ids)
      })
    )
  })
).pipe(
  Command.withDescription("Cancel open orders by id, signed with your key. The coin of each order is looked up"),
  Command.withExamples([
    { command: "trigate cancel 91490942 --key-file key.txt" },
    { command: "trigate cancel --all" }
  ]),
  Command.provide(layer),
  GatewayAccess.options
)

const terms = {
  account: Input.addressFlag("account").pipe(Flag.withDescription("The multi-sig account (required)")),
  leader: Input.addressFlag("leader").pipe(
    Flag.withDescription("The leader, who sends the action with the leader's own nonce (required)")
  ),
  threshold: Input.countFlag("threshold", 10).pipe(
    Flag.optional,
    Flag.withDescription("Number of approvals that the account requires, 1 to 10 (default: not checked)")
  ),
  cosigner: Input.addressFlag("cosigner").pipe(
    Flag.between(0, 10),
    Flag.withDescription(
      "Address that is allowed to co-sign; repeat the flag for each co-signer (default: any address)"
    )
  ),
  nonce: Input.millisFlag("nonce").pipe(
    Flag.optional,
    Flag.withDescription(
      "A nonce that the leader has not used (default: now). The venue accepts it for two days"
    )
  ),
  network: Input.network,
  save: Input.saveFlag
}

const example = (args: string) =>
  Command.withExamples([{
    command: `trigate multisig propose ${args} --save proposal.json \\\n` +
      "    --account 0x90f79bf6eb2c4f870365e785982e1f101e93b906 --leader 0x15d34aaf54267db7d7c367839aaf71a00a2c6a65"
  }])

type Terms = Command.Command.Config.Infer<typeof terms>

type Action = MultiSigProposal.ProposalRequest["action"]

const writeProposal = Effect.fnUntraced(function*<E, R>(
  given: Terms,
  make: (nonce: number) => Effect.Effect<Action, E, R>
) {
  const now = yield* Clock.currentTimeMillis
  const nonce = Option.getOrElse(given.nonce, () => now)
  const action = yield* make(nonce)
  const proposal = yield* MultiSigProposal.propose({
    network: given.network,
    multiSigUser: given.account,
    outerSigner: given.leader,
    nonce,
    action,
    ...Option.match(given.threshold, { onNone: () => ({}), onSome: (threshold) => ({ threshold }) }),
    ...(given.cosigner.length === 0 ? {} : { authorizedUsers: given.cosigner })
  })
  yield* Input.printNotes([
    ...proposal.summary,
    ...BodyNormalization.ofAction(profileFor(given.network), action).map((sentence) => `Before you sign: ${sentence}.`)
  ])
  yield* Input.save(given.save, yield* MultiSigProposal.toJson(proposal))
})

const proposeStake = (name: "delegate" | "undelegate", description: string) =>
  Command.make(name, { ...stakeArguments, ...terms }, (given) =>
    writeProposal(given, (nonce) => {
      const { network, validator, wei } = given
      return Effect.succeed(stakeAction(profileFor(network), name === "undelegate", { validator, wei, nonce }))
    })).pipe(Command.withDescription(description), example(`${name} 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 1.5`))

const proposeBigBlocks = Command.make(
  "big-blocks",
  { state: stateArgument, ...terms },
  (given) => writeProposal(given, () => Effect.succeed({ type: "evmUserModify", usingBigBlocks: given.state === "on" }))
).pipe(
  Command.withDescription("Propose to send the account's EVM transactions to big or small blocks"),
  example("big-blocks on")
)

const readAction = Schema.decodeUnknownOption(openStruct({ type: Schema.String }))

const actionAt = Effect.fnUntraced(function*(path: string) {
  const text = yield* Input.text(path)
  return yield* Effect.fromOption(
    Option.flatMap(Result.getSuccess(parseStrict(text)), (parsed) => readAction(parsed)),
    () => Input.fault(`${Input.displayName(path)} does not contain an action: expected a JSON object with a type`)
  )
})

const proposeAction = Command.make(
  "action",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription(
        "File with the action: a JSON object with a type, members in the venue's order; - for standard input"
      )
    ),
    ...terms
  },
  (given) => writeProposal(given, () => actionAt(given.file))
).pipe(
  Command.withDescription("Propose any action of the venue; a nonce or time in the action must equal --nonce"),
  example("action action.json")
)

const propose = Command.make("propose").pipe(
  Command.withDescription("Write a proposal for the co-signers; needs no key"),
  Command.withSubcommands([
    proposeStake("delegate", "Propose to delegate stake to a validator"),
    proposeStake("undelegate", "Propose to undelegate stake from a validator"),
    proposeBigBlocks,
    proposeAction
  ]),
  example("delegate 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 1.5")
)

const proposalArgument = Argument.String("proposal").pipe(
  Argument.withDescription("File with the proposal; - for standard input")
)

/** Reads one of several files; adds the file's name to an error about its content. */
const readAt = <A, E extends { readonly _tag: string; readonly message: string }>(
  path: string,
  read: (text: string) => Effect.Effect<A, E | MultiSigProposal.MultiSigMalformed>
) =>
  Effect.flatMap(Input.text(path), (text) =>
    Effect.catchIf(
      read(text),
      Schema.is(MultiSigProposal.MultiSigMalformed),
      ({ message }) => Input.fault(`${Input.displayName(path)}: ${message}`)
    ))

const approve = Command.make(
  "approve",
  { proposal: proposalArgument, ...SignedSending.keyFlags, save: Input.saveFlag },
  Effect.fnUntraced(function*({ proposal, save, ...key }) {
    const read = yield* readAt(proposal, MultiSigProposal.fromJson)
    // printed before the key is read, so that the user can still cancel
    yield* Input.printNotes(read.summary)
    const approval = yield* MultiSigProposal.approve(read, yield* SignedSending.loadSigner(key))
    yield* Console.error(`trigate: approved by ${approval.signer}`)
    yield* Input.save(save, MultiSigProposal.approvalToJson(approval))
  })
).pipe(
  Command.withDescription("Show the effects of a proposal, sign it with a co-signer's key, and print the approval"),
  Command.withShortDescription("Sign a proposal with a co-signer's key"),
  Command.withExamples([{
    command: "trigate multisig approve proposal.json --key-file key.txt --save approval-1.json"
  }])
)

const submit = Command.make(
  "submit",
  {
    proposal: proposalArgument,
    approvals: Argument.String("approval").pipe(
      Argument.variadic({ min: 1 }),
      Argument.withDescription("Files with the approvals, in any order")
    ),
    ...SignedSending.flags
  },
  Effect.fnUntraced(function*({ approvals, proposal, ...options }) {
    const read = yield* readAt(proposal, MultiSigProposal.fromJson)
    const collected = yield* Effect.forEach(approvals, (path) => readAt(path, MultiSigProposal.approvalFromJson))
    yield* SignedSending.run({ ...options, network: read.network }, (leader) =>
      Effect.map(
        MultiSigProposal.assemble(read, collected, leader),
        (body) => ({ body, signer: leader.address, says: read.summary })
      ))
  })
).pipe(
  Command.withDescription("Assemble a proposal and its approvals, sign with the leader's key, send it"),
  Command.withExamples([
    { command: "trigate multisig submit proposal.json approval-1.json approval-2.json --key-file leader.txt" }
  ]),
  GatewayAccess.options
)

/** `trigate multisig`. */
export const command = Command.make("multisig").pipe(
  Command.withDescription("Act for a multi-sig account: propose, approve on each co-signer's machine, submit"),
  Command.withSubcommands([propose, approve, submit]),
  Command.provide(Secp256k1.layer)
)
