/** The tags of errors, and links to their sections. */
import type { AnyCodec, Operation } from "@trigate/domain/operations/Operation"
import * as SchemaAST from "effect/SchemaAST"
import { code } from "./markdown.ts"

/** A link to an error; the ids of the generated headings are the tags, which have letters only. */
export const errorLink = (tag: string, from = "errors.md"): string => `[${code(tag)}](${from}#${tag.toLowerCase()})`

/** The tag of an error. */
export const tagOf = (failure: AnyCodec): string => {
  const tag = SchemaAST.resolveIdentifier(failure.ast)
  if (tag === undefined) throw new Error("An operation declares a failure without an identifier")
  return tag
}

/** The tags of the errors that an operation declares. */
export const failureTags = (operation: Operation): ReadonlyArray<string> => operation.failures.map(tagOf)
