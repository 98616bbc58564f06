/** Extracts parts of JSON text, as parsed values or as raw text. Raw text can be compared digit for digit. */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as Predicate from "effect/Predicate"

/** Returns the raw text at a path in a JSON text. */
export const raw = (json: string, path: ReadonlyArray<string | number>): string => {
  let found = json
  for (const key of path) {
    if (typeof key === "number") {
      found = Json.elements(found)?.[key] ?? ""
    } else {
      const span = Json.members(found).get(key)
      found = span === undefined ? "" : found.slice(span.start, span.end)
    }
  }
  if (found === "") throw new Error(`The JSON has no value at ${path.join(".")}`)
  return found
}

/** Returns the raw text of each element of the array at a path in a JSON text. */
export const rows = (json: string, path: ReadonlyArray<string | number>): ReadonlyArray<string> =>
  Json.elements(raw(json, path)) ?? []

/** Returns the value at a path in a parsed value; `undefined` if the path does not exist. */
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown => {
  let found = value
  for (const key of path) found = Predicate.hasProperty(found, key) ? found[key] : undefined
  return found
}

/** Returns the parsed value at a path in a JSON text; `undefined` if the path does not exist. */
export const value = (json: string, ...path: ReadonlyArray<string | number>): unknown => at(JSON.parse(json), ...path)
