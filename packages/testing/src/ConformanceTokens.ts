/**
 * Checks tokens in the formats of both server families (Python and C++), contracts that are not tokens, and the forms
 * of an address.
 */
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import { tokens as examples } from "@trigate/sandbox/SandboxExamples"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ConformanceCheck } from "./ConformanceCheck.ts"
import { equals, failsWith, succeeds } from "./ConformanceCheck.ts"
import type { ConformanceTarget } from "./ConformanceTarget.ts"

/** An unvalidated address, as an untyped caller could send it. */
const unchecked = Schema.String.pipe(Schema.brand("TonAddress"))

const at = (address: string) => ({ address: unchecked.make(address) })

const rawAddress = (text: string): string =>
  Result.match(TonAddress.parse(text), { onFailure: ({ reason }) => reason, onSuccess: TonAddress.formatRaw })

const wallet = "d76767392e7035d84ba6f83960b9399f62430ebcd7850a1e2b043d2d826c2370"

/** Returns the checks of the target's `tokens` methods. */
export const checks = ({ tokens }: ConformanceTarget): ReadonlyArray<ConformanceCheck> => {
  const describes = (address: string, expected: { readonly [field: string]: unknown }) =>
    Effect.flatMap(
      succeeds(tokens.getTokenData(at(address))),
      (token) => equals("the token", { ...token }, { address, burnable: true, ...expected })
    )
  return [
    {
      name: "a token with on-chain metadata and an exact supply above 2^64",
      effect: describes(examples.onchain, {
        name: "Trigate Sandbox",
        symbol: "TRIG",
        decimals: 9,
        totalSupply: "1180591620717411303424123",
        mintable: true,
        metadata: "onchain"
      })
    },
    {
      name: "a supply above 2^53 that a server prints as a JSON number",
      effect: describes(examples.number, {
        name: "Sandbox Number",
        symbol: "NUM",
        decimals: 18,
        totalSupply: "9007199254740993001",
        mintable: false,
        metadata: "onchain"
      })
    },
    {
      name: "a token whose name is in its metadata document",
      effect: describes(examples.semichain, {
        name: "Sandbox Dollar",
        symbol: "USD₮",
        decimals: 6,
        totalSupply: "1030000002000000",
        mintable: true,
        metadata: "offchain"
      })
    },
    {
      name: "a token whose document cannot be fetched",
      effect: describes(examples.semichainCpp, {
        decimals: 6,
        totalSupply: "1256732342639",
        mintable: true,
        metadata: "unresolved"
      })
    },
    {
      name: "a token is found by any form of its address",
      effect: Effect.flatMap(
        succeeds(tokens.getTokenData(at(rawAddress(examples.offchain)))),
        (token) => equals("the address", token.address, examples.offchain)
      )
    },
    ...[
      [examples.jettonWallet, "jetton_wallet"],
      [examples.nftItem, "nft_item"],
      [examples.nftCollection, "nft_collection"],
      [examples.wallet, "none"]
    ].map(([address = "", contractType]) => ({
      name: `${address} is a contract of type ${contractType}, not a token`,
      effect: failsWith(tokens.getTokenData(at(address)), ["TokenNotFound"], { address, contractType })
    })),
    {
      name: "an address with a wrong checksum is refused",
      // a typed client already refuses the address when it encodes the request
      effect: failsWith(tokens.getTokenData(at(examples.invalid)), ["InvalidAddress", "InvalidRequest"])
    },
    {
      name: "addresses are packed, unpacked and detected",
      effect: Effect.gen(function*() {
        const packed = yield* succeeds(tokens.packAddress(at(`0:${wallet}`)))
        yield* equals("the packed address", rawAddress(packed), `0:${wallet}`)
        const unpacked = yield* succeeds(tokens.unpackAddress(at(examples.wallet)))
        yield* equals("the unpacked address", unpacked.toLowerCase(), `0:${wallet}`)
        const detected = yield* succeeds(tokens.detectAddress(at(examples.wallet)))
        yield* equals("the detected form", detected.given_type, "friendly_bounceable")
        yield* equals("the raw form", detected.raw_form, `0:${wallet}`)
        yield* equals("the bounceable form", detected.bounceable.b64url, examples.wallet)
      })
    }
  ]
}
