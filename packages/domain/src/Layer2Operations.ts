/** The JSON-RPC methods of `POST /l2`: any EVM layer 2. */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Hash } from "./Hex.ts"
import * as Operation from "./Operation.ts"
import { Receipt } from "./Receipt.ts"

const hashParam = Schema.Tuple([Hash]).pipe(
  Schema.decodeTo(
    Schema.toType(Schema.Struct({ hash: Hash })),
    SchemaTransformation.transform({
      decode: ([hash]) => ({ hash }),
      encode: ({ hash }) => [hash] as const
    })
  )
)

/** The receipt of a transaction; `null` while it is unknown or not yet in a block. */
export const getTransactionReceipt = Operation.read({
  name: "eth_getTransactionReceipt",
  chain: "layer2",
  protocol: "layer2",
  summary: "The receipt of a transaction, with its logs and the fields that its layer 2 adds",
  sources: ["node"],
  cost: { weight: 0, requestUnits: 1 },
  request: hashParam,
  response: Schema.NullOr(Receipt),
  failures: []
})

/** The methods of `POST /l2`, by the name they have in the typed services and the client. */
export const layer2Operations = { getTransactionReceipt } as const

/** Any method of `POST /l2`. */
export type Layer2Operation = (typeof layer2Operations)[keyof typeof layer2Operations]
