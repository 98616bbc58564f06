/** The documents' name of the chain field, respelled as the venue hashes it, in the text itself. */
import * as JsonText from "@trigate/domain/JsonText"
import type { RequestFault } from "@trigate/domain/RequestError"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { documentedChainField } from "@trigate/signing/VenueProfile"
import * as Result from "effect/Result"

/** Where a body has actions: the one it submits, and the one that a multi-sig wraps. */
export const actionPaths = [["action"], ["action", "payload", "action"]] as const

const membersAt = (text: string, path: ReadonlyArray<string>): ReadonlyMap<string, JsonText.Span> => {
  let found = JsonText.members(text)
  for (const key of path) {
    const span = found.get(key)
    if (span === undefined) return new Map()
    found = JsonText.members(text, span.start)
  }
  return found
}

/**
 * The text with `venueChain` respelled to the profile's name wherever it is a key of an action; nothing else changes.
 *
 * An action that has both names would get a key twice and is refused.
 */
export const respell = (profile: VenueProfile, text: string): Result.Result<string, RequestFault> => {
  if (!text.includes(documentedChainField) && !text.includes("\\")) return Result.succeed(text)
  const spans: Array<JsonText.Span> = []
  for (const path of actionPaths) {
    const members = membersAt(text, path)
    const span = members.get(documentedChainField)
    if (span === undefined) continue
    if (members.has(profile.chainField)) {
      return Result.fail({
        path: [...path, documentedChainField],
        message: `Expected only one of ${profile.chainField} and ${documentedChainField}`
      })
    }
    spans.push(span)
  }
  const ordered = spans.toSorted((a, b) => a.keyStart - b.keyStart)
  let respelled = ""
  let from = 0
  for (const { keyEnd, keyStart } of ordered) {
    respelled += `${text.slice(from, keyStart)}${JSON.stringify(profile.chainField)}`
    from = keyEnd
  }
  return Result.succeed(respelled + text.slice(from))
}
