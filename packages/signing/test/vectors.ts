/** The recorded vectors, with their large integers read as bigints. */
import * as Schema from "effect/Schema"
import { readFileSync } from "node:fs"

const Hex = Schema.TemplateLiteral(["0x", Schema.String])

const Integer = Schema.Union([Schema.Number, Schema.BigInt])

const Signature = Schema.Struct({ r: Hex, s: Hex, v: Schema.Number })

const TypedData = Schema.Struct({
  domain: Schema.Unknown,
  types: Schema.Unknown,
  primaryType: Schema.String,
  message: Schema.Record(Schema.String, Schema.Unknown)
})

const Action = Schema.Record(Schema.String, Schema.Unknown)

const base = {
  id: Schema.String,
  isMainnet: Schema.Boolean,
  nonce: Integer,
  vaultAddress: Schema.NullOr(Schema.String),
  expiresAfter: Schema.NullOr(Integer),
  action: Action,
  signature: Signature,
  requestBody: Schema.String
}

const Single = { ...base, signer: Hex, signatureTrimmed: Signature, typedData: TypedData, digest: Hex }

const L1 = Schema.Struct({
  ...Single,
  scheme: Schema.Literal("l1"),
  actionMsgpack: Hex,
  hashPreimage: Hex,
  connectionId: Hex
})

const UserSigned = Schema.Struct({ ...Single, scheme: Schema.Literal("userSigned"), primaryType: Schema.String })

const Multi = {
  ...base,
  privateKeys: Schema.Array(Hex),
  signers: Schema.Array(Hex),
  outerSigner: Hex,
  multiSigUserInput: Schema.String,
  signatureChainId: Schema.String,
  innerAction: Action,
  outer: Schema.Struct({
    signer: Hex,
    wrapperWithoutTypeMsgpack: Hex,
    hashPreimage: Hex,
    multiSigActionHash: Hex,
    typedData: TypedData,
    digest: Hex,
    signature: Signature
  })
}

const Inner = { typedData: TypedData, digest: Hex, signatures: Schema.Array(Signature) }

const MultiL1 = Schema.Struct({
  ...Multi,
  scheme: Schema.Literal("multiSig/innerL1"),
  inner: Schema.Struct({
    ...Inner,
    signedValue: Schema.Unknown,
    signedValueMsgpack: Hex,
    hashPreimage: Hex,
    connectionId: Hex
  })
})

const MultiUserSigned = Schema.Struct({
  ...Multi,
  scheme: Schema.Literal("multiSig/innerUserSigned"),
  inner: Schema.Struct({ ...Inner, primaryType: Schema.String })
})

const File = Schema.Struct({ vectors: Schema.Array(Schema.Union([L1, UserSigned, MultiL1, MultiUserSigned])) })

const isUint64 = Schema.is(Schema.Struct({ $u64: Schema.String.check(Schema.isPattern(/^[0-9]+$/u)) }))

const file = Schema.decodeUnknownSync(File)(
  JSON.parse(
    readFileSync(new URL("./fixtures/signing-vectors.json", import.meta.url), "utf8"),
    (_, value: unknown) => isUint64(value) ? BigInt(value.$u64) : value
  )
)

export type Vector = (typeof file.vectors)[number]

export type ExpectedTypedData = typeof TypedData.Type

export const vectors = file.vectors

export const singles = vectors.filter((vector) => vector.scheme === "l1" || vector.scheme === "userSigned")

export const multis = vectors.filter((vector) => vector.scheme !== "l1" && vector.scheme !== "userSigned")

/** The vector called `id`; a vector that is gone must not turn into a test that checks nothing. */
export const vector = (id: string): Vector => {
  const found = vectors.find((vector) => vector.id === id)
  if (found === undefined) {
    throw new Error(`No vector ${id}`)
  }
  return found
}

const Body = Schema.Struct({
  action: Action,
  nonce: Integer,
  signature: Signature,
  vaultAddress: Schema.optionalKey(Schema.String),
  expiresAfter: Schema.optionalKey(Integer)
})

/** A recorded body; its integers beyond doubles are read as bigints, from the source text. */
export const readBody = (text: string) =>
  Schema.decodeUnknownSync(Body)(
    JSON.parse(text, (_key: string, value: unknown, context?: { readonly source?: string }) =>
      typeof value === "number" && !Number.isSafeInteger(value) && context?.source !== undefined
        ? BigInt(context.source)
        : value)
  )
