/** The account that programs and web pages use to trade in a sandbox. Its key is public: never send it real funds. */
import type { Address } from "./encoding/Hex.ts"

/** A key pair from the public test mnemonic ("test test … junk"). The address is in lower case. */
export interface TestKey {
  readonly address: Address
  readonly privateKey: `0x${string}`
}

/** An account that starts with perpetual and spot balances, and with staked HYPE that it can delegate. */
export const trader = {
  address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
  privateKey: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
} as const satisfies TestKey
