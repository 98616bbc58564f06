import { Address } from "@trigate/domain/encoding/Encoding"
import { Config, Redacted, Schema } from "effect"

/** Where the processes meet. */
export const redisUrl = Config.withDefault(Config.Redacted("REDIS_URL"), Redacted.make("redis://127.0.0.1:6379"))

/** Whose nonces are taken: the first account of the public test mnemonic unless told otherwise. */
export const signer = Config.withDefault(
  Config.schema(Address, "SIGNER"),
  "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
)

/** How many nonces each process takes. */
export const count = Config.withDefault(Config.schema(Schema.FiniteFromString.check(Schema.isInt()), "COUNT"), 2500)
