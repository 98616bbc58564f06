/**
 * The methods of an EVM node that stock clients call, as operations of the chain that serves them: reads that are relayed as they
 * are, and the sending of a raw transaction.
 */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Struct from "effect/Struct"
import type { Chain } from "../Chain.ts"
import { Data, Hash, Quantity } from "../encoding/Hex.ts"
import { type StateBlock, UnsupportedBlock } from "../errors/RequestError.ts"
import { OutcomeUnknown } from "../errors/UpstreamError.ts"
import * as Operation from "../operations/Operation.ts"
import { type Method, methodsNamed } from "./EvmMethodTable.ts"
import { Receipt } from "./Receipt.ts"

/** Params: a list of up to 4 items, which the node validates. */
export const Params = Schema.Array(Schema.Unknown).check(Schema.isMaxLength(4))

/** Which route takes the methods, and whether its nodes know the state of the latest block only. */
export interface Serving {
  readonly chain: Chain
  readonly protocol: Operation.Protocol
  readonly latestOnly: boolean
}

/** What all calls of a route share. */
export const served = ({ chain, protocol }: Serving) => ({
  chain,
  protocol,
  sources: ["node"],
  cost: { weight: 0, requestUnits: 1 }
} as const)

/** The params of a method that takes none. */
export const noParams = Schema.Tuple([]).pipe(
  Schema.decodeTo(
    Schema.Struct({}),
    SchemaTransformation.transform({ decode: () => ({}), encode: () => [] as const })
  )
)

/** The block param of a method that reads state, and the refusal of blocks that the nodes of a route do not know. */
export const stateAt = (
  { latestOnly }: Serving,
  position: number | undefined,
  alsoAt: ReadonlyArray<StateBlock> = []
): Pick<RelayedRead, "blockParam"> & { readonly failures: ReadonlyArray<typeof UnsupportedBlock> } =>
  latestOnly && position !== undefined
    ? { failures: [UnsupportedBlock], blockParam: { position, supported: ["latest", ...alsoAt] } }
    : { failures: [] }

/** A read with a type, whose relayed params are the node's to judge as those of the reads without one. */
export const typedRead = <
  const Name extends string,
  Request extends Operation.AnyCodec,
  Response extends Operation.AnyCodec
>(
  serving: Serving,
  declaration:
    & Pick<Operation.Operation<Name, "read", Request, Response>, "cheap" | "name" | "request" | "response" | "summary">
    & { readonly example: Request["Encoded"] }
) => Operation.read({ ...served(serving), ...declaration, failures: [], relayedRequest: Params, verbatim: true })

interface OnRoute extends Struct.Lambda {
  <O>(operation: (serving: Serving) => O): O
  readonly "~lambda.out": this["~lambda.in"] extends (serving: Serving) => infer O ? O : never
}

/** The operations of a table for a route. */
export const on = <Table extends { readonly [name: string]: (serving: Serving) => unknown }>(
  serving: Serving,
  table: Table
) => Struct.map(table, Struct.lambda<OnRoute>((operation) => operation(serving)))

/** A pass-through read: neither its request nor its answer is decoded. */
export type RelayedRead = Operation.Operation<string, "read">

/** The relayed reads of a table. */
export const relayedReads = (
  methods: { readonly [name: string]: Method },
  serving: Serving
): ReadonlyArray<RelayedRead> =>
  Object.entries(methods).map(([name, { alsoAt, block, ...method }]) =>
    Operation.read({
      ...served(serving),
      ...method,
      ...stateAt(serving, block, alsoAt),
      name,
      request: Params,
      response: Schema.Unknown,
      verbatim: true
    })
  )

/** What a name of the settings stands for: methods of a family, or a method of no family, which may have any params. */
export const configuredReads = (name: string, serving: Serving): ReadonlyArray<RelayedRead> => {
  const declared = methodsNamed(name)
  return declared !== undefined ? relayedReads(declared, serving) : [Operation.read({
    ...served(serving),
    name,
    summary: "A method that the settings relay; its params are not checked",
    request: Schema.Unknown,
    response: Schema.Unknown,
    failures: [],
    verbatim: true
  })]
}

/** The advice if the outcome of a raw transaction is unknown. */
export const transactionAdvice =
  "Resend the identical bytes: \"already known\" or \"nonce too low\" then means that the first one landed. " +
  "Do not sign the transaction again under another nonce before you know"

/** Sends a signed transaction. */
export const rawTransaction = (serving: Serving) =>
  Operation.once({
    ...served(serving),
    name: "eth_sendRawTransaction",
    summary: "Send a signed transaction, at most once",
    request: Schema.Tuple([Data]),
    response: Hash,
    failures: [OutcomeUnknown],
    advice: transactionAdvice
  })

/** Sends a signed transaction and waits, for at most the given milliseconds, until its receipt is there (EIP-7966). */
export const rawTransactionSync = (serving: Serving) =>
  Operation.once({
    ...rawTransaction(serving),
    name: "eth_sendRawTransactionSync",
    summary: "Send a signed transaction, at most once, and tell its receipt",
    request: Schema.Tuple([Data, Schema.optionalKey(Schema.Union([Quantity, Schema.Natural]))]),
    response: Receipt
  })
