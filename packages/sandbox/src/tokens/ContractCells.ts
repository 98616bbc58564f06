/**
 * Makes the code and data cells of the sandbox's jettons, in the layout of `contracts/*.tolk`. Metadata is encoded as
 * in TEP-64.
 */
import { Address, beginCell, Cell, Dictionary } from "@ton/core"
import { sha256_sync as sha256 } from "@ton/crypto"
import { minterCode, walletCode } from "./JettonCode.ts"
import type { Content, Contract } from "./TokenState.ts"

/** Code and data of a contract. */
export interface Cells {
  readonly code: Cell
  readonly data: Cell
}

const minter = Cell.fromBase64(minterCode)
const wallet = Cell.fromBase64(walletCode)

/**
 * Prefixes that TEP-64 defines for a dictionary of attributes, for a URI, and for an attribute's text in a chain of
 * cells.
 */
const prefixes = { onchain: 0, offchain: 1, snake: 0 } as const

const attribute = (text: string): Cell => beginCell().storeUint(prefixes.snake, 8).storeStringTail(text).endCell()

/** Makes a metadata cell. The keys of its dictionary are the SHA-256 hashes of the attribute names. */
const contentCell = (content: Content): Cell => {
  if (content.type === "offchain") {
    return beginCell().storeUint(prefixes.offchain, 8).storeStringTail(content.data).endCell()
  }
  const attributes = Dictionary.empty(Dictionary.Keys.Buffer(32), Dictionary.Values.Cell())
  for (const [name, text] of Object.entries(content.data)) attributes.set(sha256(name), attribute(text))
  return beginCell().storeUint(prefixes.onchain, 8).storeDict(attributes).endCell()
}

/** Returns the cells of a contract; `undefined` for a contract that the sandbox stores without code. */
export const contractCells = (contract: Contract): Cells | undefined => {
  switch (contract.kind) {
    case "jetton_master":
      return {
        code: minter,
        data: beginCell()
          .storeCoins(contract.supply)
          .storeBit(contract.mintable)
          .storeAddress(contract.admin === undefined ? null : Address.parse(contract.admin))
          .storeRef(contentCell(contract.content))
          .storeRef(wallet)
          .endCell()
      }
    case "jetton_wallet":
      return {
        code: wallet,
        data: beginCell()
          .storeCoins(contract.balance)
          .storeAddress(Address.parse(contract.owner))
          .storeAddress(Address.parse(contract.jetton))
          .storeRef(wallet)
          .endCell()
      }
    default:
      return undefined
  }
}

/**
 * Decodes the cells of a jetton contract. Returns `undefined` for the cells of any other contract. `seeded` is the
 * contract's initial data, from which the metadata of a jetton master is copied.
 */
export const readJetton = ({ code, data }: Cells, seeded: Contract | undefined): Contract | undefined => {
  const slice = data.beginParse()
  if (code.equals(wallet)) {
    return {
      kind: "jetton_wallet",
      balance: slice.loadCoins(),
      owner: slice.loadAddress().toString(),
      jetton: slice.loadAddress().toString()
    }
  }
  return seeded?.kind === "jetton_master" ? { ...seeded, supply: slice.loadCoins() } : undefined
}
