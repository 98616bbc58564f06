/** The upstream answered that the requested resource does not exist. */
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Schema from "effect/Schema"
import { declare, tagged } from "./Problem.ts"

/** The address is not the master contract of a fungible token. `contractType` says what it is. */
export class TokenNotFound extends HttpApiError.Problem<TokenNotFound>()(
  "TokenNotFound",
  declare("TokenNotFound", 404, "Token not found"),
  { ...tagged("TokenNotFound"), address: Schema.String, contractType: Schema.String }
) {
  get group() {
    return "fix-request" as const
  }
}

/** The venue does not know the coin. It says so with HTTP 500 and `null`, which clients would retry. */
export class UnknownAsset extends HttpApiError.Problem<UnknownAsset>()(
  "UnknownAsset",
  declare("UnknownAsset", 404, "Unknown asset"),
  { ...tagged("UnknownAsset"), coin: Schema.String }
) {
  get group() {
    return "fix-request" as const
  }
}
