/** Signed EVM transactions: their signature, and the accounts that send and receive them. */
import { type Address, type Data, lowerCase } from "@trigate/domain/encoding/Encoding"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { TransactionSerializable, TransactionSerialized } from "viem"
import { keccak256, pad, parseTransaction, recoverAddress, serializeTransaction } from "viem/utils"

/** Returns the signature of a transaction. */
export const readSignature = ({ r = "0x0", s = "0x0", v, yParity }: TransactionSerializable) => ({
  r: pad(r),
  s: pad(s),
  // in a legacy transaction, `v` is 27 or 28, or twice the chain ID plus 35 or 36 (EIP-155)
  yParity: yParity ?? (Number(v) + 1) % 2
})

/** Recovers the sender of a transaction. */
export const recoverSender = (fields: TransactionSerializable): Promise<Address> => {
  const { r: _, s: __, v: ___, yParity: ____, ...unsigned } = fields
  return recoverAddress({ hash: keccak256(serializeTransaction(unsigned)), signature: readSignature(fields) })
}

/** Returns whether bytes are a legacy transaction (an RLP list) or a transaction of type 1 to 4. */
const isTransaction = (bytes: Data): bytes is Data & TransactionSerialized => /^0x(?:0[1-4]|[c-f])/iu.test(bytes)

/** The accounts of a transaction, in lower case. `to` is absent if the transaction creates a contract. */
export interface Parties {
  readonly from: Address
  readonly to: Address | undefined
}

/** Recovers the accounts of a raw transaction. Returns `undefined` if the transaction cannot be read. */
export const readParties = (raw: Data): Effect.Effect<Parties | undefined> => {
  const read = isTransaction(raw) ? Result.try(() => parseTransaction(raw)) : Result.fail(undefined)
  if (Result.isFailure(read)) return Effect.undefined
  const { to } = read.success
  return Effect.tryPromise(() => recoverSender(read.success)).pipe(
    Effect.map((from): Parties => ({
      from: lowerCase(from),
      to: to === undefined || to === null ? undefined : lowerCase(to)
    })),
    Effect.orElseSucceed(() => undefined)
  )
}
