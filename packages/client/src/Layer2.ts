/** The layer 2. */
import * as Paths from "@trigate/api/Paths"
import type { ServedFailure } from "@trigate/domain/GatewayError"
import type { Hash } from "@trigate/domain/Hex"
import * as Layer2Operations from "@trigate/domain/Layer2Operations"
import type { Receipt } from "@trigate/domain/Receipt"
import type * as Effect from "effect/Effect"
import type { Connection } from "./Connection.ts"
import { call } from "./internal/JsonRpc.ts"

/** The receipt of a transaction; `null` while it is unknown or not yet in a block. */
export const getTransactionReceipt: (
  request: { readonly hash: Hash }
) => Effect.Effect<Receipt | null, ServedFailure, Connection> = call(
  Paths.layer2,
  Layer2Operations.getTransactionReceipt
)
