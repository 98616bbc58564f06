/** The account that programs and pages use to trade in a sandbox. Its key is public: never send value to it. */
import type { Address } from "./encoding/Hex.ts"

/** A key pair of the public test mnemonic ("test test … junk"); the address is lower case. */
export interface TestKey {
  readonly address: Address
  readonly privateKey: `0x${string}`
}

/** An account with perpetual and spot balances, and stake to delegate. */
export const trader = {
  address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
  privateKey: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
} as const satisfies TestKey
