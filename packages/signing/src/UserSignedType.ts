/** The user-signed actions whose signed fields are known. */
import type { Field } from "./Signable.ts"

/** A user-signed action as data; the field that names the network comes before `fields`, in every one of them. */
export interface UserSignedType {
  readonly actionType: string
  /** Type name without the profile's prefix. */
  readonly name: string
  readonly fields: ReadonlyArray<Field>
}

/** Delegation of stake to a validator. */
export const tokenDelegate: UserSignedType = {
  actionType: "tokenDelegate",
  name: "TokenDelegate",
  fields: [
    { name: "validator", type: "address" },
    { name: "wei", type: "uint64" },
    { name: "isUndelegate", type: "bool" },
    { name: "nonce", type: "uint64" }
  ]
}

/** A transfer, met inside multi-sig wrappers; its addresses are signed as text, letter case included. */
export const sendAsset: UserSignedType = {
  actionType: "sendAsset",
  name: "SendAsset",
  fields: [
    { name: "destination", type: "string" },
    { name: "sourceDex", type: "string" },
    { name: "destinationDex", type: "string" },
    { name: "token", type: "string" },
    { name: "amount", type: "string" },
    { name: "fromSubAccount", type: "string" },
    { name: "nonce", type: "uint64" }
  ]
}

const known = new Map([tokenDelegate, sendAsset].map((type) => [type.actionType, type]))

/** The type that signs actions of this `type`, if it is a known user-signed one. */
export const find = (actionType: unknown): UserSignedType | undefined =>
  typeof actionType === "string" ? known.get(actionType) : undefined
