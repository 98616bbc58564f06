/** What the compiler knows of each method: its request, its result and the exact union of its errors. */
import { describe, expectTypeOf, it } from "@effect/vitest"
import type { Readiness } from "@trigate/api/unstable/HealthApi"
import type { CandleFileRequest, CandlesFailure } from "@trigate/client/Candles"
import type { GatewayClient } from "@trigate/client/GatewayClient"
import type { RawQuery } from "@trigate/client/Info"
import type { AnySignedAction, SubmitFailure } from "@trigate/domain/actions/Action"
import type { ActionRecord, ActionReference, ActionRejected, ActionResult } from "@trigate/domain/actions/ActionOutcome"
import type { Resolution, StillUnknown } from "@trigate/domain/actions/Resolution"
import type {
  Candle,
  CandleSeries,
  CandleStretch,
  CandleWindow,
  CandleWindowRequest,
  WalkOptions
} from "@trigate/domain/candles/Candle"
import type { Address, Hash, StorageSlot } from "@trigate/domain/encoding/Encoding"
import type {
  ActionNotFound,
  CallError,
  CallFailure,
  InvalidAddress,
  TokenNotFound,
  UnknownAsset,
  UnsupportedBlock
} from "@trigate/domain/errors/GatewayError"
import type { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import type { Receipt } from "@trigate/domain/evm/EvmResources"
import type { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import type { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Book, SpotMeta } from "@trigate/domain/info/Market"
import type { DetectedAddress, TokenContract, TokenData } from "@trigate/domain/tokens/TokenData"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import type { CandleFormat } from "@trigate/domain/unstable/candles/CandleText"
import type { Inspection } from "@trigate/domain/unstable/Inspection"
import type { Layer2 } from "@trigate/evm/Layer2"
import type { TokenChain } from "@trigate/tokens/TokenChain"
import type { Exchange } from "@trigate/trading/Exchange"
import type { Info } from "@trigate/trading/Info"
import type { TradingEvm } from "@trigate/trading/TradingEvm"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"

type Client = GatewayClient["Service"]
type Of<Group extends keyof Client, Name extends keyof Client[Group]> = Client[Group][Name]
type Method<Args extends ReadonlyArray<unknown>, A, E> = (...args: Args) => Effect.Effect<A, E>

/** The tags that every call to a gateway can end in. */
type ServedTag = "RequestError" | "UpstreamError" | "UnavailableOnNode"

describe("types of the client", () => {
  it("signed actions", () => {
    expectTypeOf<Of<"exchange", "submit">>().toEqualTypeOf<
      Method<[signed: AnySignedAction], ActionResult, SubmitFailure>
    >()
    expectTypeOf<Of<"exchange", "resolve">>().toEqualTypeOf<
      Method<[action: Uint8Array | AnySignedAction], Resolution, StillUnknown>
    >()
    expectTypeOf<Of<"exchange", "outcome">>().toEqualTypeOf<
      Method<
        [reference: ActionReference, options?: { readonly wait?: Duration.Input }],
        ActionRecord,
        CallFailure | ActionNotFound
      >
    >()
    expectTypeOf<Of<"exchange", "inspect">>().toEqualTypeOf<
      Method<[signed: Uint8Array | AnySignedAction, expectedSigner?: Address], Inspection, CallFailure>
    >()
    expectTypeOf<Effect.Error<ReturnType<Of<"exchange", "submit">>>["_tag"]>().toEqualTypeOf<
      ServedTag | "ActionRejected" | "NonceOutOfWindow" | "OutcomeUnknown"
    >()
  })

  it("queries", () => {
    expectTypeOf<Of<"info", "spotMeta">>().returns.toEqualTypeOf<Effect.Effect<SpotMeta, CallFailure>>()
    expectTypeOf<Of<"info", "raw">>().toEqualTypeOf<
      Method<[request: RawQuery], unknown, CallFailure | UnknownAsset>
    >()
    expectTypeOf<Of<"info", "candleSnapshot">>().toEqualTypeOf<
      Method<[request: CandleWindowRequest], CandleWindow, CallFailure | UnknownAsset>
    >()
    expectTypeOf<Of<"info", "allMids">>().toEqualTypeOf<
      Method<[request?: { readonly dex?: string | null }], { readonly [coin: string]: string }, CallFailure>
    >()
    expectTypeOf<Of<"info", "l2Book">>().returns.toEqualTypeOf<Effect.Effect<Book | null, CallFailure>>()
    expectTypeOf<Of<"info", "recentTrades">>().returns.toExtend<Effect.Effect<unknown, CallFailure | UnknownAsset>>()
    expectTypeOf<Of<"info", "candles">>().toEqualTypeOf<
      (
        request: CandleWindowRequest,
        options?: WalkOptions
      ) => Stream.Stream<CandleStretch, CallFailure | UnknownAsset>
    >()
    expectTypeOf<CallFailure["_tag"]>().toEqualTypeOf<ServedTag>()
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

  it("HyperEVM", () => {
    expectTypeOf<Of<"evm", "getStorageAt">>().toEqualTypeOf<
      Method<
        [request: { readonly address: Address; readonly slot: StorageSlot }],
        StorageSlot,
        CallFailure | UnsupportedBlock
      >
    >()
    expectTypeOf<Of<"evm", "gasPrice">>().returns.toEqualTypeOf<Effect.Effect<bigint, CallFailure>>()
    expectTypeOf<Of<"evm", "bigBlockGasPrice">>().returns.toEqualTypeOf<Effect.Effect<bigint, CallFailure>>()
    expectTypeOf<Of<"evm", "usingBigBlocks">>().toEqualTypeOf<
      Method<[request: { readonly address: Address }], boolean, CallFailure>
    >()
  })

  it("the token chain", () => {
    type At = [params: { readonly address: string }]
    expectTypeOf<Of<"tokens", "getTokenData">>().toEqualTypeOf<
      Method<At, TokenData, CallFailure | InvalidAddress | TokenNotFound>
    >()
    expectTypeOf<Of<"tokens", "getTokenContract">>().toEqualTypeOf<
      Method<
        [params: { readonly address: string; readonly seqno?: number }],
        TokenContract,
        CallFailure | InvalidAddress | TokenNotFound
      >
    >()
    expectTypeOf<Of<"tokens", "packAddress">>().toEqualTypeOf<Method<At, string, CallFailure | InvalidAddress>>()
    expectTypeOf<Of<"tokens", "unpackAddress">>().toEqualTypeOf<Method<At, string, CallFailure | InvalidAddress>>()
    expectTypeOf<Of<"tokens", "detectAddress">>().toEqualTypeOf<
      Method<At, DetectedAddress, CallFailure | InvalidAddress>
    >()
  })

  it("any method of the token chain by its declaration", () => {
    const check = ({ tokens }: Client) => {
      const detected = tokens.call(tokenRpcOperations.detectAddress, { address: "0:…" })
      expectTypeOf(detected).toEqualTypeOf<Effect.Effect<DetectedAddress, CallFailure | InvalidAddress>>()
      const contract = tokens.call(tokenRpcOperations.getTokenData, { address: "0:…" })
      expectTypeOf(contract).toEqualTypeOf<
        Effect.Effect<TokenContract, CallFailure | InvalidAddress | TokenNotFound>
      >()
      const balance = tokens.call(tokenRpcOperations.getAddressBalance, { address: "0:…", seqno: 1 })
      expectTypeOf(balance).toEqualTypeOf<Effect.Effect<unknown, CallFailure | InvalidAddress>>()
      const newest = tokens.call(tokenRpcOperations.getMasterchainInfo, {})
      expectTypeOf(newest).toEqualTypeOf<Effect.Effect<unknown, CallFailure | InvalidAddress>>()
      // @ts-expect-error -- params of another method
      const wrong = tokens.call(tokenRpcOperations.detectAddress, { hash: "…" })
      return wrong
    }
    expectTypeOf(check).toBeFunction()
  })

  it("the layer 2 and the gateway itself", () => {
    expectTypeOf<Of<"layer2", "getTransactionReceipt">>().toEqualTypeOf<
      Method<[request: { readonly hash: Hash }], Receipt | null, CallFailure>
    >()
    expectTypeOf<Of<"health", "ready">>().toEqualTypeOf<Method<[], Readiness, CallFailure>>()
    expectTypeOf<Of<"health", "metrics">>().toEqualTypeOf<Method<[], string, CallFailure>>()
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
    expectTypeOf<Exclude<Every["e"], CallError | ActionRejected | StillUnknown>>().toEqualTypeOf<never>()
  })

  it("a method of an embedded service takes the place of the client's", () => {
    type Embedded<Service, Names extends keyof Service> = Pick<Service, Names>
    type Signed = Embedded<Exchange["Service"], "submit" | "resolve">
    expectTypeOf<Signed>().toExtend<Pick<Client["exchange"], keyof Signed>>()
    type Queries = Embedded<Info["Service"], keyof typeof infoOperations>
    expectTypeOf<Queries>().toExtend<Pick<Client["info"], keyof Queries>>()
    type Evm = Embedded<TradingEvm["Service"], keyof typeof evmOperations | "sendRawTransaction">
    expectTypeOf<Evm>().toExtend<Client["evm"]>()
    type Tokens = Embedded<
      TokenChain["Service"],
      "getTokenData" | "getTokenContract" | "packAddress" | "unpackAddress" | "detectAddress"
    >
    expectTypeOf<Tokens>().toExtend<Pick<Client["tokens"], keyof Tokens>>()
    type Rollup = Embedded<Layer2["Service"], keyof typeof layer2Operations | "sendRawTransaction">
    expectTypeOf<Rollup>().toExtend<Client["layer2"]>()
  })
})
