/** No public method of a service or of the client fails with more than six tags. */
import { describe, expectTypeOf, it } from "@effect/vitest"
import type { CandleArchive } from "@trigate/archive/CandleArchive"
import type { CallerKeys } from "@trigate/callers/CallerKeys"
import type { KeyStore } from "@trigate/callers/KeyStore"
import type { GatewayClient } from "@trigate/client/GatewayClient"
import type { Streams as ClientStreams } from "@trigate/client/Streams"
import type { Layer2 } from "@trigate/evm/Layer2"
import type { NonceSource } from "@trigate/signing/NonceSource"
import type { Orders } from "@trigate/signing/Orders"
import type { Signer } from "@trigate/signing/Signer"
import type { TokenChain } from "@trigate/tokens/TokenChain"
import type { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import type { Admission } from "@trigate/trading/admission/Admission"
import type { Exchange } from "@trigate/trading/Exchange"
import type { Info } from "@trigate/trading/Info"
import type { Inspector } from "@trigate/trading/Inspector"
import type { Streams } from "@trigate/trading/streams/Streams"
import type { TradingEvm } from "@trigate/trading/TradingEvm"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"

/** What a method, or an effect that is a member, fails with. */
type ErrorIn<Member> = Member extends (...args: never) => infer Returned ? ErrorIn<Returned>
  : Member extends Effect.Effect<unknown, infer E, infer _> ? E
  : Member extends Stream.Stream<unknown, infer E, infer _> ? E
  : never

type TagIn<Member> = ErrorIn<Member> extends infer E ? E extends { readonly _tag: infer Tag } ? Tag : "untagged" : never

type Intersected<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void ? All
  : never

/** The number of members of a union of literals. */
type Size<Union, Counted extends ReadonlyArray<unknown> = []> = [Union] extends [never] ? Counted["length"]
  : Intersected<Union extends unknown ? () => Union : never> extends () => infer Last
    ? Size<Exclude<Union, Last>, [...Counted, Last]>
  : never

/** The names of the members that fail with more than six tags. */
type Overloaded<Service> = {
  readonly [Name in keyof Service]-?: Size<TagIn<Service[Name]>> extends 0 | 1 | 2 | 3 | 4 | 5 | 6 ? never : Name
}[keyof Service]

type Client = GatewayClient["Service"]

describe("the tags of a method", () => {
  it("are counted", () => {
    expectTypeOf<Size<TagIn<Exchange["Service"]["submit"]>>>().toEqualTypeOf<6>()
    expectTypeOf<Size<TagIn<Info["Service"]["spotMeta"]>>>().toEqualTypeOf<3>()
    expectTypeOf<Size<TagIn<Client["candles"]["bars"]>>>().toEqualTypeOf<6>()
    type Seven = { readonly _tag: "A" | "B" | "C" | "D" | "E" | "F" | "G" }
    type Service = { readonly good: Effect.Effect<void>; readonly bad: () => Effect.Effect<void, Seven> }
    expectTypeOf<Overloaded<Service>>().toEqualTypeOf<"bad">()
  })

  it("are at most six for each method of the services", () => {
    expectTypeOf<Overloaded<Exchange["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<Info["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<TradingEvm["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<TokenChain["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<Layer2["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<Streams["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<Inspector["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<Admission["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<ActionLog["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<Signer["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<NonceSource["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<Orders["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<CandleArchive["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<CallerKeys["Service"]>>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<KeyStore["Service"]>>().toEqualTypeOf<never>()
  })

  it("are at most six for each method of the client", () => {
    type InGroups = { readonly [Group in keyof Client]: Overloaded<Client[Group]> }[keyof Client]
    expectTypeOf<InGroups>().toEqualTypeOf<never>()
    expectTypeOf<Overloaded<ClientStreams["Service"]>>().toEqualTypeOf<never>()
  })
})
