/** Which of the two ways a single action is signed. */
import * as Result from "effect/Result"
import type { Action } from "./CanonicalAction.ts"
import { UnsignableAction } from "./UnsignableAction.ts"
import * as UserSignedType from "./UserSignedType.ts"

/** Hashed whole as an L1 action, or signed field by field. */
export type SigningScheme =
  | { readonly scheme: "l1" }
  | { readonly scheme: "userSigned"; readonly type: UserSignedType.UserSignedType }

/**
 * The scheme of an action that wraps no other. Fails with `UnsignableAction` (`unknownType`) for an action that names a
 * `signatureChainId`, as only user-signed ones do, but whose fields are not known: hashing it as an L1 action would
 * recover a stranger.
 */
export const of = (action: Action): Result.Result<SigningScheme, UnsignableAction> => {
  const type = UserSignedType.find(action["type"])
  if (type !== undefined) {
    return Result.succeed({ scheme: "userSigned", type })
  }
  return Object.hasOwn(action, "signatureChainId")
    ? Result.fail(
      new UnsignableAction({
        reason: "unknownType",
        path: ["type"],
        detail: "User-signed action of a type whose fields are not known here"
      })
    )
    : Result.succeed({ scheme: "l1" })
}
