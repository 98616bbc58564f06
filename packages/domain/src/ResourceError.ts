/** The upstream answered, and what was asked for does not exist there. */
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Schema from "effect/Schema"
import { declare, tagged } from "./Problem.ts"

/** The address is not the master contract of a fungible token; `contractType` says what was found instead. */
export class TokenNotFound extends HttpApiError.Problem<TokenNotFound>()(
  "TokenNotFound",
  declare("TokenNotFound", 404, "Token not found"),
  { ...tagged("TokenNotFound"), address: Schema.String, contractType: Schema.String }
) {}

/** The venue knows no such coin: it answers HTTP 500 `null`, which clients would otherwise retry. */
export class UnknownAsset extends HttpApiError.Problem<UnknownAsset>()(
  "UnknownAsset",
  declare("UnknownAsset", 404, "Unknown asset"),
  { ...tagged("UnknownAsset"), coin: Schema.String }
) {}
