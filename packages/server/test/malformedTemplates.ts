/** A valid body of each operation, and which of its fields take what. */
import * as Schema from "effect/Schema"
import { multiSigBody } from "./bodies.ts"
import type { Field, Template } from "./malformedBodies.ts"

const account = "0x0123456789abcdef0123456789abcdef01234567"

/** The master contract of a token, in its friendly form. */
export const master = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"

const signature = { r: "0x1", s: "0x2", v: 27 }

const signedFields: ReadonlyArray<Field> = [
  { path: ["action"], kind: "object" },
  { path: ["nonce"], kind: "millis" },
  { path: ["signature"], kind: "object" },
  { path: ["signature", "r"], kind: "signaturePart" },
  { path: ["signature", "s"], kind: "signaturePart" },
  { path: ["signature", "v"], kind: "recovery" }
]

const decodeBody = Schema.decodeUnknownSync(Schema.Struct({
  action: Schema.StructWithRest(Schema.Struct({ type: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)]),
  signature: Schema.Unknown
}))

interface Action {
  readonly type: string
  readonly [member: string]: unknown
}

const signed = (now: number, action: Action, fields: ReadonlyArray<Field>, by: unknown = signature): Template => ({
  name: action.type,
  body: { action, nonce: now, signature: by },
  fields: [...signedFields, ...fields.map((field) => ({ ...field, path: ["action", ...field.path] }))]
})

/** Signed actions; `now` is a nonce inside the window. */
export const actions = (now: number): ReadonlyArray<Template> => {
  const delegate = {
    type: "tokenDelegate",
    signatureChainId: "0x66eee",
    hyperliquidChain: "Mainnet",
    validator: account,
    wei: 100_000_000,
    isUndelegate: false,
    nonce: now
  }
  const multiSig = decodeBody(JSON.parse(multiSigBody(now, JSON.stringify(delegate))))
  return [
    signed(now, delegate, [
      { path: ["signatureChainId"], kind: "word" },
      { path: ["hyperliquidChain"], kind: "word" },
      { path: ["validator"], kind: "address" },
      { path: ["wei"], kind: "uint64" },
      { path: ["isUndelegate"], kind: "boolean" },
      { path: ["nonce"], kind: "millis" }
    ]),
    signed(now, { type: "evmUserModify", usingBigBlocks: true }, [{ path: ["usingBigBlocks"], kind: "boolean" }]),
    signed(now, { type: "CSignerAction", jailSelf: null }, [{ path: ["jailSelf"], kind: "nothing" }]),
    signed(now, multiSig.action, [
      { path: ["signatureChainId"], kind: "word" },
      { path: ["signatures"], kind: "array" },
      { path: ["signatures", 1], kind: "object", optional: true },
      { path: ["signatures", 1, "r"], kind: "signaturePart" },
      { path: ["signatures", 0, "v"], kind: "recovery" },
      { path: ["payload"], kind: "object" },
      { path: ["payload", "multiSigUser"], kind: "address" },
      { path: ["payload", "outerSigner"], kind: "address" },
      { path: ["payload", "action"], kind: "object" },
      { path: ["payload", "action", "type"], kind: "shortText" }
    ], multiSig.signature)
  ]
}

const and = (template: Template, ...fields: ReadonlyArray<Field>): Template => ({
  ...template,
  fields: [...template.fields, ...fields]
})

/** The same, with the type among the fields: of another type than the four nothing is relayed. */
export const relayedActions = (now: number): ReadonlyArray<Template> =>
  actions(now).map((template) => and(template, { path: ["action", "type"], kind: "word" }))

/** Queries of the venue. */
export const queries: ReadonlyArray<Template> = [
  { name: "spotMeta", body: { type: "spotMeta" }, fields: [{ path: ["type"], kind: "word" }] },
  {
    name: "candleSnapshot",
    body: { type: "candleSnapshot", req: { coin: "BTC", interval: "1m", startTime: 1, endTime: 2 } },
    fields: [
      { path: ["type"], kind: "word" },
      { path: ["req"], kind: "object" },
      { path: ["req", "coin"], kind: "shortText" },
      { path: ["req", "interval"], kind: "word" },
      { path: ["req", "startTime"], kind: "millis" }
    ]
  }
]

const call = (method: string, params: unknown, fields: ReadonlyArray<Field>): Template => ({
  name: method,
  body: { jsonrpc: "2.0", id: 1, method, params },
  fields: [
    { path: ["id"], kind: "envelopeId", optional: true },
    { path: ["method"], kind: "word" },
    { path: ["params"], kind: "params" },
    ...fields.map((field) => ({ ...field, path: ["params", ...field.path] }))
  ]
})

const versioned = (template: Template): Template =>
  and(
    template,
    { path: ["jsonrpc"], kind: "version" },
    { path: ["id"], kind: "listedId", optional: true }
  )

/** Calls of HyperEVM. */
export const evmCalls: ReadonlyArray<Template> = [
  call("eth_getStorageAt", [account, "0x0", "latest"], [
    { path: [0], kind: "address" },
    { path: [1], kind: "signaturePart" },
    { path: [2], kind: "block", optional: true }
  ]),
  call("eth_usingBigBlocks", [account], [{ path: [0], kind: "address" }])
].map(versioned)

/** Calls of the layer 2. */
export const layer2Calls: ReadonlyArray<Template> = [
  call("eth_getTransactionReceipt", [`0x${"ab".repeat(32)}`], [{ path: [0], kind: "hash" }])
].map(versioned)

const optionalVersion: Field = { path: ["jsonrpc"], kind: "version", optional: true }

/** Calls of the token chain, whose servers do not ask for a version. */
export const tokenCalls: ReadonlyArray<Template> = [
  call("detectAddress", { address: master }, [{ path: ["address"], kind: "tokenAddress" }]),
  call("shards", { seqno: 1 }, [{ path: ["seqno"], kind: "millis" }]),
  call("runGetMethod", { address: master, method: "get_jetton_data", stack: [] }, [
    { path: ["address"], kind: "tokenAddress" },
    { path: ["stack"], kind: "array" }
  ]),
  call("getConfigParam", { config_id: 34 }, [{ path: ["config_id"], kind: "integer" }])
].map((template) => and(template, optionalVersion))
