/** The trading chain's EVM. */
import * as Paths from "@trigate/api/Paths"
import * as EvmOperations from "@trigate/domain/EvmOperations"
import type { ServedFailure } from "@trigate/domain/GatewayError"
import type { Address, StorageSlot } from "@trigate/domain/Hex"
import type { UnsupportedBlock } from "@trigate/domain/RequestError"
import type * as Effect from "effect/Effect"
import type { Connection } from "./Connection.ts"
import { call } from "./internal/JsonRpc.ts"

/** One storage word of a contract, at the latest block. */
export const getStorageAt: (
  request: { readonly address: Address; readonly slot: StorageSlot }
) => Effect.Effect<StorageSlot, ServedFailure | UnsupportedBlock, Connection> = call(
  Paths.evm,
  EvmOperations.getStorageAt
)

/** Base fee of the next small block, in wei. */
export const gasPrice: () => Effect.Effect<bigint, ServedFailure, Connection> = call(Paths.evm, EvmOperations.gasPrice)

/** Base fee of the next big block, in wei. */
export const bigBlockGasPrice: () => Effect.Effect<bigint, ServedFailure, Connection> = call(
  Paths.evm,
  EvmOperations.bigBlockGasPrice
)

/** Whether an account's transactions go to big blocks. */
export const usingBigBlocks: (
  request: { readonly address: Address }
) => Effect.Effect<boolean, ServedFailure, Connection> = call(Paths.evm, EvmOperations.usingBigBlocks)
