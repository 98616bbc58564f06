/**
 * The standard methods of an EVM node, as operations of the chain that the node serves: reads, which are relayed
 * unchanged, and raw transactions.
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

/** A route of EVM methods: its chain and protocol, and whether its nodes serve state at the latest block only. */
export interface Serving {
  readonly chain: Chain
  readonly protocol: Operation.Protocol
  readonly latestOnly: boolean
}

/** Returns the common properties of a route's operations. */
export const served = ({ chain, protocol }: Serving) => ({
  chain,
  protocol,
  sources: ["node"],
  cost: { weight: 0, requestUnits: 1 }
} as const)

/** The params schema of a method that has no params. */
export const noParams = Schema.Tuple([]).pipe(
  Schema.decodeTo(
    Schema.Struct({}),
    SchemaTransformation.transform({ decode: () => ({}), encode: () => [] as const })
  )
)

/** Declares the block parameter of a method that reads state, and the error for blocks that the nodes do not serve. */
export const stateAt = (
  { latestOnly }: Serving,
  position: number | undefined,
  alsoAt: ReadonlyArray<StateBlock> = []
): Pick<RelayedRead, "blockParam"> & { readonly failures: ReadonlyArray<typeof UnsupportedBlock> } =>
  latestOnly && position !== undefined
    ? { failures: [UnsupportedBlock], blockParam: { position, supported: ["latest", ...alsoAt] } }
    : { failures: [] }

/** Declares a typed read. If a caller's call is relayed, the node and not the gateway validates its params. */
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

/** Makes the operations of a route from a table of functions, each of which accepts the route. */
export const on = <Table extends { readonly [name: string]: (serving: Serving) => unknown }>(
  serving: Serving,
  table: Table
) => Struct.map(table, Struct.lambda<OnRoute>((operation) => operation(serving)))

/** An untyped read: neither request nor response is decoded. */
export type RelayedRead = Operation.Operation<string, "read">

/** Makes an untyped read for each method of a table. */
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

/**
 * Returns the methods that a name in the settings selects: a family, or a single method outside the families. The
 * params of a single method are not validated.
 */
export const configuredReads = (name: string, serving: Serving): ReadonlyArray<RelayedRead> => {
  const declared = methodsNamed(name)
  return declared !== undefined ? relayedReads(declared, serving) : [Operation.read({
    ...served(serving),
    name,
    summary: "A method that the settings allow; its params are not validated",
    request: Schema.Unknown,
    response: Schema.Unknown,
    failures: [],
    verbatim: true
  })]
}

/** The advice for a raw transaction with an unknown outcome. */
export const transactionAdvice =
  "Resend the identical bytes: \"already known\" or \"nonce too low\" then means that the first attempt was accepted. " +
  "Do not sign the transaction again under another nonce before you know its outcome"

/** Returns the operation that sends a signed transaction. */
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

/**
 * Returns the operation that sends a signed transaction and waits for its receipt, at most for the number of
 * milliseconds in the params (EIP-7966).
 */
export const rawTransactionSync = (serving: Serving) =>
  Operation.once({
    ...rawTransaction(serving),
    name: "eth_sendRawTransactionSync",
    summary: "Send a signed transaction, at most once, and return its receipt",
    request: Schema.Tuple([Data, Schema.optionalKey(Schema.Union([Quantity, Schema.Natural]))]),
    response: Receipt
  })
