/** What the compiler knows of each method: its request, its result and the exact union of its errors. */
import { describe, expectTypeOf, it } from "@effect/vitest"
import type { CandleSeries } from "@trigate/api/CandlesApi"
import type { Readiness } from "@trigate/api/HealthApi"
import type { CandleFileRequest, CandlesFailure } from "@trigate/client/Candles"
import type { GatewayClient } from "@trigate/client/GatewayClient"
import type { RawQuery } from "@trigate/client/Info"
import type { ActionRejected, ActionResult } from "@trigate/domain/actions/ActionOutcome"
import type { ServedExchangeFailure } from "@trigate/domain/actions/ExchangeOperations"
import type { Resolution, StillUnknown } from "@trigate/domain/actions/Resolution"
import type { AnySignedAction } from "@trigate/domain/actions/SignedAction"
import type { Candle, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import type { CandleFormat } from "@trigate/domain/candles/CandleText"
import type * as CandleWalk from "@trigate/domain/candles/CandleWalk"
import type { CandleStretch, CandleWindow } from "@trigate/domain/candles/CandleWindow"
import type { Address, Hash, StorageSlot } from "@trigate/domain/encoding/Hex"
import type { GatewayError, ServedFailure } from "@trigate/domain/errors/GatewayError"
import type { InvalidAddress, UnsupportedBlock } from "@trigate/domain/errors/RequestError"
import type { TokenNotFound, UnknownAsset } from "@trigate/domain/errors/ResourceError"
import type { evmOperations } from "@trigate/domain/evm/EvmOperations"
import type { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import type { Receipt } from "@trigate/domain/evm/Receipt"
import type { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Book } from "@trigate/domain/info/Market"
import type { SpotMeta } from "@trigate/domain/info/SpotMeta"
import type { Inspection } from "@trigate/domain/Inspection"
import type { DetectedAddress, TokenContract, TokenData } from "@trigate/domain/tokens/TokenData"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import type { Layer2 } from "@trigate/layer2/Layer2"
import type { TokenChain } from "@trigate/tokens/TokenChain"
import type { Exchange } from "@trigate/trading/Exchange"
import type { Info } from "@trigate/trading/Info"
import type { TradingEvm } from "@trigate/trading/TradingEvm"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"

type Client = GatewayClient["Service"]
type Of<Group extends keyof Client, Name extends keyof Client[Group]> = Client[Group][Name]
type Method<Args extends ReadonlyArray<unknown>, A, E> = (...args: Args) => Effect.Effect<A, E>

type ErrorOf<Call> = Call extends (
  ...args: never
) => Effect.Effect<unknown, { readonly _tag: infer Tag }> ? Tag :
  never

/** The tags that every call to a gateway can end in. */
type ServedTag =
  | "InvalidRequest"
  | "UnsupportedMethod"
  | "UnavailableOnNode"
  | "ChainNotConfigured"
  | "Unauthorized"
  | "NotPermitted"
  | "QuotaExceeded"
  | "Overloaded"
  | "PayloadTooLarge"
  | "UpstreamForbidden"
  | "UpstreamUnavailable"
  | "UpstreamRateLimited"
  | "UpstreamTimeout"
  | "UpstreamMalformed"

describe("types of the client", () => {
  it("signed actions", () => {
    expectTypeOf<Of<"exchange", "submit">>().toEqualTypeOf<
      Method<[signed: AnySignedAction], ActionResult, ActionRejected | ServedExchangeFailure>
    >()
    expectTypeOf<Of<"exchange", "resolve">>().toEqualTypeOf<
      Method<[action: Uint8Array | AnySignedAction], Resolution, StillUnknown>
    >()
    expectTypeOf<Of<"exchange", "inspect">>().toEqualTypeOf<
      Method<[signed: Uint8Array | AnySignedAction, expectedSigner?: Address], Inspection, ServedFailure>
    >()
    expectTypeOf<Effect.Error<ReturnType<Of<"exchange", "submit">>>["_tag"]>().toEqualTypeOf<
      | ServedTag
      | "ActionRejected"
      | "UnsupportedAction"
      | "NonceOutOfWindow"
      | "NonceMismatch"
      | "NonceAlreadyUsed"
      | "InvalidSignature"
      | "SignerNotAllowed"
      | "OutcomeUnknown"
    >()
  })

  it("queries", () => {
    expectTypeOf<Of<"info", "spotMeta">>().returns.toEqualTypeOf<Effect.Effect<SpotMeta, ServedFailure>>()
    expectTypeOf<Of<"info", "raw">>().toEqualTypeOf<
      Method<[request: RawQuery], unknown, ServedFailure | UnknownAsset>
    >()
    expectTypeOf<Of<"info", "candleSnapshot">>().toEqualTypeOf<
      Method<[request: CandleWindowRequest], CandleWindow, ServedFailure | UnknownAsset>
    >()
    expectTypeOf<Of<"info", "allMids">>().toEqualTypeOf<
      Method<[request?: { readonly dex?: string | null }], { readonly [coin: string]: string }, ServedFailure>
    >()
    expectTypeOf<Of<"info", "l2Book">>().returns.toEqualTypeOf<Effect.Effect<Book | null, ServedFailure>>()
    expectTypeOf<Of<"info", "recentTrades">>().returns.toExtend<Effect.Effect<unknown, ServedFailure | UnknownAsset>>()
    expectTypeOf<Of<"info", "candles">>().toEqualTypeOf<
      (
        request: CandleWindowRequest,
        options?: CandleWalk.Options
      ) => Stream.Stream<CandleStretch, ServedFailure | UnknownAsset>
    >()
    expectTypeOf<ServedFailure["_tag"]>().toEqualTypeOf<ServedTag>()
  })

  it("candle history", () => {
    expectTypeOf<Of<"candles", "list">>().toEqualTypeOf<Method<[], ReadonlyArray<CandleSeries>, CandlesFailure>>()
    expectTypeOf<Of<"candles", "bars">>().toEqualTypeOf<
      (request: CandleFileRequest) => Stream.Stream<Candle, CandlesFailure | UnknownAsset>
    >()
    expectTypeOf<Of<"candles", "file">>().toEqualTypeOf<
      (request: CandleFileRequest, format: CandleFormat) => Stream.Stream<Uint8Array, CandlesFailure | UnknownAsset>
    >()
    expectTypeOf<CandlesFailure["_tag"]>().toEqualTypeOf<ServedTag | "ArchiveNotConfigured" | "ArchiveUnavailable">()
  })

  it("the trading chain's EVM", () => {
    expectTypeOf<Of<"evm", "getStorageAt">>().toEqualTypeOf<
      Method<
        [request: { readonly address: Address; readonly slot: StorageSlot }],
        StorageSlot,
        ServedFailure | UnsupportedBlock
      >
    >()
    expectTypeOf<Of<"evm", "gasPrice">>().returns.toEqualTypeOf<Effect.Effect<bigint, ServedFailure>>()
    expectTypeOf<Of<"evm", "bigBlockGasPrice">>().returns.toEqualTypeOf<Effect.Effect<bigint, ServedFailure>>()
    expectTypeOf<Of<"evm", "usingBigBlocks">>().toEqualTypeOf<
      Method<[request: { readonly address: Address }], boolean, ServedFailure>
    >()
  })

  it("the token chain", () => {
    type At = [params: { readonly address: string }]
    expectTypeOf<Of<"tokens", "getTokenData">>().toEqualTypeOf<
      Method<At, TokenData, ServedFailure | InvalidAddress | TokenNotFound>
    >()
    expectTypeOf<Of<"tokens", "getTokenContract">>().toEqualTypeOf<
      Method<
        [params: { readonly address: string; readonly seqno?: number }],
        TokenContract,
        ServedFailure | InvalidAddress | TokenNotFound
      >
    >()
    expectTypeOf<Of<"tokens", "packAddress">>().toEqualTypeOf<Method<At, string, ServedFailure | InvalidAddress>>()
    expectTypeOf<Of<"tokens", "unpackAddress">>().toEqualTypeOf<Method<At, string, ServedFailure | InvalidAddress>>()
    expectTypeOf<Of<"tokens", "detectAddress">>().toEqualTypeOf<
      Method<At, DetectedAddress, ServedFailure | InvalidAddress>
    >()
  })

  it("any method of the token chain by its declaration", () => {
    const check = ({ tokens }: Client) => {
      const detected = tokens.call(tokenRpcOperations.detectAddress, { address: "0:…" })
      expectTypeOf(detected).toEqualTypeOf<Effect.Effect<DetectedAddress, ServedFailure | InvalidAddress>>()
      const contract = tokens.call(tokenRpcOperations.getTokenData, { address: "0:…" })
      expectTypeOf(contract).toEqualTypeOf<
        Effect.Effect<TokenContract, ServedFailure | InvalidAddress | TokenNotFound>
      >()
      const balance = tokens.call(tokenRpcOperations.getAddressBalance, { address: "0:…", seqno: 1 })
      expectTypeOf(balance).toEqualTypeOf<Effect.Effect<unknown, ServedFailure | InvalidAddress>>()
      const newest = tokens.call(tokenRpcOperations.getMasterchainInfo, {})
      expectTypeOf(newest).toEqualTypeOf<Effect.Effect<unknown, ServedFailure | InvalidAddress>>()
      // @ts-expect-error -- params of another method
      const wrong = tokens.call(tokenRpcOperations.detectAddress, { hash: "…" })
      return wrong
    }
    expectTypeOf(check).toBeFunction()
  })

  it("the layer 2 and the gateway itself", () => {
    expectTypeOf<Of<"layer2", "getTransactionReceipt">>().toEqualTypeOf<
      Method<[request: { readonly hash: Hash }], Receipt | null, ServedFailure>
    >()
    expectTypeOf<Of<"health", "ready">>().toEqualTypeOf<Method<[], Readiness, ServedFailure>>()
    expectTypeOf<Of<"health", "metrics">>().toEqualTypeOf<Method<[], string, ServedFailure>>()
  })

  it("nothing is any, and no error is outside the closed set", () => {
    // `tokens.call` is generic, so that only its uses above have types
    type Named = { [Group in keyof Client]: Omit<Client[Group], "call"> }
    type Every = { [Group in keyof Named]: Named[Group][keyof Named[Group]] }[keyof Named] extends infer Call
      ? Call extends (...args: never) => Effect.Effect<infer A, infer E, infer R> ? { a: A; e: E; r: R } : never
      : never
    type IsAny<T> = 0 extends 1 & T ? true : false
    type AnyIn<T> = T extends { a: infer A; e: infer E } ? IsAny<A> | IsAny<E> : never
    expectTypeOf<AnyIn<Every>>().toEqualTypeOf<false>()
    expectTypeOf<Every["r"]>().toEqualTypeOf<never>()
    expectTypeOf<Exclude<Every["e"], GatewayError | ActionRejected | StillUnknown>>().toEqualTypeOf<never>()
  })

  it("a method of an embedded service takes the place of the client's, and fails with no refusal of a caller", () => {
    type Embedded<Service, Names extends keyof Service> = Pick<Service, Names>
    type Signed = Embedded<Exchange["Service"], "submit" | "resolve">
    expectTypeOf<Signed>().toExtend<Pick<Client["exchange"], keyof Signed>>()
    type Queries = Embedded<Info["Service"], keyof typeof infoOperations>
    expectTypeOf<Queries>().toExtend<Pick<Client["info"], keyof Queries>>()
    type Evm = Embedded<TradingEvm["Service"], keyof typeof evmOperations>
    expectTypeOf<Evm>().toExtend<Client["evm"]>()
    type Tokens = Embedded<
      TokenChain["Service"],
      "getTokenData" | "getTokenContract" | "packAddress" | "unpackAddress" | "detectAddress"
    >
    expectTypeOf<Tokens>().toExtend<Pick<Client["tokens"], keyof Tokens>>()
    type Rollup = Embedded<Layer2["Service"], keyof typeof layer2Operations>
    expectTypeOf<Rollup>().toExtend<Client["layer2"]>()
    type Errors =
      | ErrorOf<Signed[keyof Signed]>
      | ErrorOf<Queries[keyof Queries]>
      | ErrorOf<Evm[keyof Evm] | Rollup[keyof Rollup]>
      | ErrorOf<Tokens[keyof Tokens]>
    type Refusal = "Unauthorized" | "Overloaded" | "PayloadTooLarge"
    expectTypeOf<Extract<Errors, Refusal>>().toEqualTypeOf<never>()
    expectTypeOf<Effect.Error<ReturnType<Info["Service"]["spotMeta"]>>["_tag"]>().toEqualTypeOf<
      Exclude<ServedTag, Refusal | "NotPermitted">
    >()
  })
})
