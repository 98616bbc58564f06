/** Receipts and answers for the tests of this package. */
import * as Json from "@trigate/domain/encoding/Encoding"
import type { Hash } from "@trigate/domain/encoding/Encoding"
import { Receipt } from "@trigate/domain/evm/EvmResources"
import * as Schema from "effect/Schema"

export const hash: Hash = `0x${"ab".repeat(32)}`
export const otherHash: Hash = `0x${"cd".repeat(32)}`

const inBlock = (blockHash: Hash): Receipt => ({
  transactionHash: hash,
  transactionIndex: 3n,
  blockHash,
  blockNumber: 0x8cded0fn,
  from: `0x${"22".repeat(20)}`,
  to: `0x${"33".repeat(20)}`,
  cumulativeGasUsed: 142_342n,
  gasUsed: 21_000n,
  effectiveGasPrice: 1_747n,
  contractAddress: null,
  logs: [
    {
      address: `0x${"44".repeat(20)}`,
      topics: [`0x${"55".repeat(32)}`],
      data: "0x",
      blockHash,
      blockNumber: 0x8cded0fn,
      transactionHash: hash,
      transactionIndex: 3n,
      logIndex: 7n,
      removed: false,
      blockTimestamp: "0x698fb3d7"
    }
  ],
  logsBloom: `0x${"00".repeat(256)}`,
  type: "0x2",
  status: "success",
  l1Fee: "0x2a20c9eaa"
})

/** An OP stack receipt with a log and an extra in each. */
export const receipt = inBlock(`0x${"11".repeat(32)}`)

/** The same receipt before its block is sealed. */
export const preconfirmed = inBlock(`0x${"00".repeat(32)}`)

/** A receipt as the wire carries it. */
export const wireText = (value: Receipt | null): string =>
  Json.stringify(Schema.encodeSync(Schema.NullOr(Receipt))(value))
