/** `POST /exchange` and its refusals beside what the venue was recorded to answer, and beside its documentation. */
import { assert, describe, it } from "@effect/vitest"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type * as UpstreamResponse from "@trigate/domain/operations/Operation"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import { coins, contracts, keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import type { Asset } from "@trigate/sandbox/unstable/venue/Assets"
import * as VenueExchange from "@trigate/sandbox/unstable/venue/VenueExchange"
import * as VenueInfo from "@trigate/sandbox/unstable/venue/VenueInfo"
import * as Words from "@trigate/sandbox/unstable/venue/VenueRefusal"
import type { Unhashable } from "@trigate/signing/unstable/actions/ActionHash"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import recorded from "../../domain/test/fixtures/exchange-bodies.json" with { type: "json" }
import { btc, eth, markOf, orderOf, venueNow } from "./trader.ts"
import { atStart, bigBlocks, delegate, start } from "./venue.ts"

const { agent, cosigner, leader, multiSigUser, stranger, trader, validator } = keys

/** A response with all that differs between two runs replaced: numbers, addresses and IDs. */
interface Form {
  readonly http: number
  readonly contentType: string
  readonly content: unknown
}

const formOfText = (text: string): string =>
  text.replace(/0x[0-9a-f]{40}/giu, "ADDRESS").replace(
    /[0-9]+(?:\.[0-9]+)?/gu,
    (digits) => digits.includes(".") ? "0.0" : "0"
  )

const formOf = (value: unknown): unknown =>
  typeof value === "string"
    ? formOfText(value)
    : typeof value === "number"
    ? 0
    : Array.isArray(value)
    ? value.map(formOf)
    : value !== null && typeof value === "object"
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, formOf(item)]))
    : value

const recordedForm = ({ body, contentType, http, text }: {
  readonly http: number
  readonly body?: unknown
  readonly contentType?: string
  readonly text?: string
}): Form => ({
  http,
  contentType: contentType ?? "application/json",
  content: formOf(text === undefined ? body : text === "null" ? null : text)
})

const sandboxForm = ({ contentType, json, status, text }: UpstreamResponse.UpstreamResponse): Form => {
  const [essence = ""] = contentType.split(";")
  return {
    http: status,
    contentType: essence,
    content: formOf(essence === "application/json" ? json.valueOrUndefined : text)
  }
}

type Answered = Effect.Effect<UpstreamResponse.UpstreamResponse, Unhashable, SandboxState>

const post = (body: string): Answered =>
  Effect.flatMap(SandboxState, (state) => VenueExchange.submit(VenueProfile.mainnet, state, Encoding.encode(body)))

const submit = (signed: object): Answered => post(Encoding.stringify(signed))

const act = (
  key: TestKey,
  action: SandboxSigner.Unsigned["action"],
  envelope: Partial<SandboxSigner.Unsigned> = {}
): Answered => Effect.flatMap(SandboxSigner.signAction(key, { nonce: start, ...envelope, action }), submit)

const together = (changes: Partial<SandboxSigner.MultiSigRequest> = {}): Answered =>
  Effect.flatMap(
    SandboxSigner.signMultiSig({
      nonce: start,
      multiSigUser: multiSigUser.address,
      action: bigBlocks(true),
      leader,
      cosigners: [leader, cosigner],
      ...changes
    }),
    submit
  )

const order = (...parts: Parameters<typeof orderOf>): Answered =>
  act(trader, { type: "order", orders: [orderOf(...parts)], grouping: "na" })

const userSigned = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet", nonce: start } as const

const signersOf = (count: number) =>
  JSON.stringify({
    authorizedUsers: Array.from({ length: count }, (_, index) => `0x${String(index).padStart(40, "0")}`),
    threshold: 1
  })

/** How the sandbox comes to give each recorded response. */
const exchanges: { readonly [id: string]: Answered } = {
  "ok-default": act(trader, bigBlocks(true)),
  "ok-order-resting": Effect.flatMap(markOf("ETH", -0.1), (px) => order(eth, "buy", "0.02", px)),
  "ok-order-filled": Effect.flatMap(markOf("ETH", 0.05), (px) => order(eth, "buy", "0.02", px, { tif: "Ioc" })),
  "ok-order-filled-recorded": Effect.flatMap(
    markOf("ETH", 0.05),
    (px) => order(eth, "buy", "0.02", px, { tif: "Ioc" })
  ),
  "ok-order-error": Effect.flatMap(markOf("BTC", -0.1), (px) => order(btc, "buy", "0.0001", px)),
  "ok-order-error-recorded": Effect.flatMap(markOf("ETH", 0.1), (px) => order(eth, "sell", "0.02", px, { r: true })),
  "err-extra-agent": act(validator, {
    type: "approveAgent",
    ...userSigned,
    agentAddress: agent.address,
    agentName: "x"
  }),
  "err-no-user": act(stranger, bigBlocks(true)),
  "err-no-user-old": act(stranger, bigBlocks(true)),
  "err-must-deposit": act(agent, delegate(validator.address, 1n, start)),
  "err-lab-01": Effect.andThen(act(trader, bigBlocks(true)), act(trader, bigBlocks(false))),
  "err-lab-02": act(trader, bigBlocks(true), { nonce: start - 2 * 86_400_000 - 1 }),
  "err-lab-03": act(trader, bigBlocks(true), { nonce: start + 86_400_000 + 1 }),
  "err-lab-04": act(trader, delegate(validator.address, 1n, start), { nonce: start + 1 }),
  "err-lab-05": Effect.flatMap(
    SandboxSigner.signAction(trader, { nonce: start, action: delegate(validator.address, 1n, start) }),
    (signed) => submit({ ...signed, action: { ...signed.action, hyperliquidChain: "Testnet" } })
  ),
  "err-lab-06": act(multiSigUser, bigBlocks(true)),
  "err-lab-07": together({ cosigners: [leader] }),
  "err-lab-08": together({ cosigners: [leader, stranger] }),
  "err-lab-09": together({ leader: trader }),
  "err-lab-10": together({ leader: stranger }),
  "err-lab-11": together({ multiSigUser: trader.address }),
  "err-lab-12": act(trader, { type: "convertToMultiSigUser", ...userSigned, signers: signersOf(11) }),
  "err-lab-13": act(trader, bigBlocks(true), { vaultAddress: contracts.none }),
  "err-expired": act(trader, bigBlocks(true), { expiresAfter: start - 1 }),
  "err-signer-inactive": act(trader, { type: "CSignerAction", jailSelf: null }),
  "err-unknown-validator": act(trader, delegate(trader.address, 1n, start)),
  "err-insufficient-stake": act(trader, delegate(validator.address, 2n ** 60n, start)),
  "err-address-limit": Effect.andThen(
    Effect.flatMap(SandboxState, ({ venue }) => venue.limitRequests(trader.address, 0)),
    act(trader, bigBlocks(true))
  ),
  "http-422": post("{}"),
  "http-429": Effect.gen(function*() {
    const { faults } = yield* SandboxState
    yield* faults.set({ rateLimited: 1 })
    return yield* faults.ask(act(trader, bigBlocks(true)))
  }),
  "http-500-null": Effect.gen(function*() {
    const { info, seed, venue } = yield* SandboxState
    const view = {
      seed,
      ...(yield* Ref.get(info.state)),
      venue: yield* Ref.get(venue.state),
      trading: yield* venueNow,
      now: start
    }
    const req = { coin: coins.unknown, interval: "1h", startTime: 0 }
    return VenueInfo.answer(view, Encoding.encode(JSON.stringify({ type: "candleSnapshot", req })))
  })
}

/** Where the sandbox's response is another one, what it is, and why. */
const differences: { readonly [id: string]: { readonly sandbox: unknown; readonly reason: string } } = {
  "ok-order-error": {
    sandbox: {
      status: "ok",
      response: { type: "order", data: { statuses: [{ error: "Order must have minimum value of $0. asset=0" }] } }
    },
    reason: "the documentation leaves out the asset, which recorded responses name"
  },
  "err-no-user-old": {
    sandbox: { status: "err", response: "User or API Wallet ADDRESS does not exist." },
    reason: "the venue's present text has no prefix"
  }
}

/** Bodies that no venue sent. */
const invented = new Set(["err-status-only"])

describe("POST /exchange", () => {
  it.effect.each(recorded.bodies.filter(({ id }) => !invented.has(id)))(
    "answers as recorded: $id",
    (body) =>
      atStart(Effect.gen(function*() {
        const exchange = exchanges[body.id] ?? assert.fail(`Nothing in this test leads to ${body.id}`)
        const expected = recordedForm(body)
        const known = differences[body.id]
        if (known !== undefined) assert.notDeepEqual(known.sandbox, expected.content, `${body.id} is no difference`)
        assert.deepStrictEqual(
          sandboxForm(yield* exchange),
          known === undefined ? expected : { ...expected, content: known.sandbox }
        )
      }))
  )

  it("has an exchange for each recorded body, and no other", () => {
    const ids = recorded.bodies.map(({ id }) => id).filter((id) => !invented.has(id))
    assert.deepStrictEqual(Object.keys(exchanges).toSorted(), ids.toSorted())
    assert.deepStrictEqual(Object.keys(differences).filter((id) => !ids.includes(id)), [])
  })
})

/**
 * The error strings of the venue's documentation ("Error responses"), and the sandbox's. Those that differ, or that the sandbox never
 * gives, state the reason.
 */
const documented: {
  readonly [type: string]: {
    readonly text: string
    readonly words?: (asset: Asset) => string
    readonly reason?: string
  }
} = {
  Tick: { text: "Price must be divisible by tick size.", words: Words.tick },
  MinTradeNtl: { text: "Order must have minimum value of $10.", words: Words.minimumNotional },
  MinTradeSpotNtl: {
    text: "Order must have minimum value of 10 {quote_token}.",
    words: (asset) => Words.minimumSpotNotional(asset, "{quote_token}")
  },
  PerpMargin: { text: "Insufficient margin to place order.", words: Words.insufficientMargin },
  ReduceOnly: { text: "Reduce only order would increase position.", words: Words.reduceOnly },
  BadAloPx: {
    text: "Post only order would have immediately matched, bbo was 1@2.",
    words: (asset) => Words.postOnly(asset, "1", "2")
  },
  IocCancel: { text: "Order could not immediately match against any resting orders.", words: Words.noMatch },
  BadTriggerPx: { text: "Invalid TP/SL price.", words: Words.triggerPrice },
  MarketOrderNoLiquidity: { text: "No liquidity available for market order.", words: Words.noLiquidity },
  PositionIncreaseAtOpenInterestCap: {
    text: "Order would increase open interest while open interest is capped",
    words: Words.openInterestCapped
  },
  PositionFlipAtOpenInterestCap: {
    text: "Order would increase open interest while open interest is capped",
    words: Words.openInterestCapped
  },
  TooAggressiveAtOpenInterestCap: {
    text: "Order rejected due to price more aggressive than oracle while at open interest cap",
    reason: "at the cap the sandbox refuses every order that opens, whatever its price"
  },
  OpenInterestIncrease: {
    text: "Order would increase open interest too quickly",
    reason: "the sandbox does not limit how fast open interest grows"
  },
  InsufficientSpotBalance: {
    text: "(Spot-only) Order has insufficient spot balance to trade",
    words: Words.insufficientSpot,
    reason: "clients recorded another text than the documentation has"
  },
  Oracle: {
    text: "Order price too far from oracle",
    words: () => Words.priceBand,
    reason: "clients recorded another text than the documentation has, which names no asset"
  },
  PerpMaxPosition: {
    text: "Order would cause position to exceed margin tier limit at current leverage",
    reason: "the sandbox's perpetuals have one margin tier"
  },
  MissingOrder: { text: "Order was never placed, already canceled, or filled.", words: Words.unknownOrder }
}

describe("the documented errors", () => {
  it.effect.each(Object.entries(documented))("%s", ([type, { reason, text, words }]) =>
    atStart(Effect.gen(function*() {
      const asset = (yield* venueNow).listing.byId.get(eth) ?? assert.fail("ETH is not listed")
      const isSame = words?.(asset) === `${text} asset=${eth}`
      assert.strictEqual(isSame, reason === undefined, `${type}: ${words?.(asset)}`)
    })))
})
