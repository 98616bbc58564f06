import type { SignedAction, SubmitFailure } from "@trigate/domain/actions/Action"
import type { StillUnknown } from "@trigate/domain/actions/Resolution"
import type { Address } from "@trigate/domain/encoding/Encoding"
import type { CallFailure, InvalidAddress, TokenNotFound, UnknownAsset } from "@trigate/domain/errors/GatewayError"
import { TokenChain } from "@trigate/tokens/TokenChain"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import { BigDecimal, Clock, Context, Effect, Layer, Schema } from "effect"
import { Signer } from "./Signer.ts"

/** The coin had no trade in the last hour. */
export class NoPrice extends Schema.TaggedError<NoPrice>()("NoPrice", { coin: Schema.String }) {}

/** Stakes while prices are high enough, and knows what it holds. */
export class Treasury extends Context.Service<Treasury, {
  /** Delegates `wei` (HYPE x 10^8) unless the price is below `floor`. */
  readonly stake: (order: {
    readonly validator: Address
    readonly wei: bigint
    readonly floor: string
  }) => Effect.Effect<"staked" | "postponed", NoPrice | UnknownAsset | SubmitFailure | StillUnknown>
  /** All units of a token, in the token's own decimals. */
  readonly supply: (address: string) => Effect.Effect<string, CallFailure | InvalidAddress | TokenNotFound>
}>()("example/Treasury") {}

const coin = "HYPE"
const hour = 3_600_000

const make = Effect.gen(function*() {
  const exchange = yield* Exchange
  const info = yield* Info
  const signer = yield* Signer
  const tokens = yield* TokenChain

  const price = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const { candles } = yield* info.candleSnapshot({ coin, interval: "1m", startTime: now - hour })
    const newest = candles.at(-1)
    return newest === undefined ? yield* new NoPrice({ coin }) : BigDecimal.fromStringUnsafe(newest.c)
  })

  // if the reply is lost, the identical bytes show the outcome; nothing is signed anew
  const settle = (signed: SignedAction) =>
    exchange.resolve(signed).pipe(
      Effect.delay("5 seconds"),
      Effect.retry({ times: 5 }),
      Effect.flatMap((found) => found._tag === "Rejected" ? Effect.fail(found.rejection) : Effect.void)
    )

  const send = (signed: SignedAction) =>
    Effect.catchTag(Effect.asVoid(exchange.submit(signed)), "OutcomeUnknown", () => settle(signed))

  return Treasury.of({
    stake: Effect.fn("Treasury.stake")(function*({ floor, validator, wei }) {
      if (BigDecimal.isLessThan(yield* price, BigDecimal.fromStringUnsafe(floor))) return "postponed"
      const nonce = yield* Clock.currentTimeMillis
      yield* send(
        yield* signer.sign(nonce, {
          type: "tokenDelegate",
          signatureChainId: "0x66eee",
          hyperliquidChain: "Mainnet",
          validator,
          wei,
          isUndelegate: false,
          nonce
        })
      )
      return "staked"
    }),
    supply: Effect.fn("Treasury.supply")(function*(address) {
      const { decimals, symbol = "units", totalSupply } = yield* tokens.getTokenData({ address })
      return `${BigDecimal.format(BigDecimal.make(BigInt(totalSupply), decimals))} ${symbol}`
    })
  })
})

/** The treasury over whatever chains the program provides. */
export const layer: Layer.Layer<Treasury, never, Exchange | Info | Signer | TokenChain> = Layer.effect(Treasury, make)
