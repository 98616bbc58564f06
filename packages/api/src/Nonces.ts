/** The request and the response of `POST /nonces`. */
import { Address, Millis } from "@trigate/domain/encoding/Encoding"
import * as Schema from "effect/Schema"
import { actionSigner } from "./Examples.ts"

/** The request for the next nonces of a signer. */
export const NonceRequest = Schema.Struct({
  signer: Address,
  count: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 }))).annotateKey({
    description: "The number of nonces; 1 if absent"
  })
}).annotate({ identifier: "NonceRequest", examples: [{ signer: actionSigner, count: 2 }] })
export type NonceRequest = typeof NonceRequest.Type

/** The next nonces of a signer, in ascending order. No other request gets them. */
export const Nonces = Schema.Struct({ signer: Address, nonces: Schema.Array(Millis) }).annotate({
  identifier: "Nonces"
})
export type Nonces = typeof Nonces.Type
