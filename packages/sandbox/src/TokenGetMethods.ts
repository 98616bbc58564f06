/** What the get methods of the token chain's contracts return, as far as that takes running no code. */
import type { Contract } from "./TokenContracts.ts"

/** Get methods that the contracts of a kind have (TEP-62, TEP-66, TEP-74, wallet v4); any other one they lack. */
const known: { readonly [Kind in Contract["kind"]]: ReadonlySet<string> } = {
  wallet: new Set(["seqno", "get_subwallet_id", "get_public_key", "is_plugin_installed", "get_plugin_list"]),
  jetton_master: new Set(["get_jetton_data", "get_wallet_address"]),
  jetton_wallet: new Set(["get_wallet_data"]),
  nft_collection: new Set(["get_collection_data", "get_nft_address_by_index", "get_nft_content", "royalty_params"]),
  nft_item: new Set(["get_nft_data"])
}

/** Id of the wallets here, as `getWalletInformation` tells it too. */
export const walletId = 698_983_191

/** Exit codes of the virtual machine: done, no such method, no code to run. */
const exitCodes = { done: 0, noMethod: 11, noCode: -13 } as const

const ran = (exitCode: number, gasUsed: number, numbers: ReadonlyArray<number> = []) => ({
  "@type": "smc.runResult",
  gas_used: gasUsed,
  stack: numbers.map((number) => ["num", `0x${number.toString(16)}`]),
  exit_code: exitCode
})

/** A method by its id, which is a checksum of its name. */
const named = (method: string | number): string | number => method === 85_143 ? "seqno" : method

/** The result of a get method; none where that would take running code, or reading an id. */
export const result = (contract: Contract | undefined, by: string | number) => {
  const method = named(by)
  if (contract === undefined) return ran(exitCodes.noCode, 0)
  if (typeof method === "number") return undefined
  if (!known[contract.kind].has(method)) return ran(exitCodes.noMethod, 308)
  if (contract.kind !== "wallet") return undefined
  switch (method) {
    case "seqno":
      return ran(exitCodes.done, 549, [contract.seqno])
    case "get_subwallet_id":
      return ran(exitCodes.done, 549, [walletId])
    default:
      return undefined
  }
}
