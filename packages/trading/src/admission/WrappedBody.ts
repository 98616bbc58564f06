/**
 * Extracts signed bodies from the wrappers of other programs. A wrapper is an object in which one member contains the
 * body, either as an object or as JSON text.
 */
import * as Json from "@trigate/domain/encoding/Json"
import type { Mistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"

/** A body extracted from its wrapper. */
export interface UnwrappedBody {
  readonly text: string
  readonly mistake: Mistake
}

/** Maximum number of nested wrappers. */
const maxLayers = 3

const parsed = (value: unknown): unknown =>
  Predicate.isString(value) ? Result.getOrUndefined(Json.parseStrict(value)) : value

/**
 * Returns the only member whose value is an object with a signature, or the JSON text of such an object. Returns
 * `undefined` if no member or several members match.
 */
const holder = (value: Readonly<Record<string, unknown>>): readonly [name: string, inner: unknown] | undefined => {
  const found = Object.entries(value).filter(([, member]) => Predicate.isReadonlyObject(parsed(member)))
  return found.length === 1 ? found[0] : undefined
}

/** Parses the action if it is a string: some programs send it as JSON text. */
const withAction = (body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  ...body,
  action: parsed(body["action"])
})

/** Returns the body inside a wrapper; `undefined` if the text is not a wrapper. */
export const unwrap = (text: string): UnwrappedBody | undefined => {
  const path: Array<string> = []
  let value: unknown = parsed(text)
  for (let layer = 0; layer <= maxLayers; layer++) {
    if (Predicate.isString(value)) {
      value = parsed(value)
      path.push("JSON text")
    }
    if (!Predicate.isReadonlyObject(value)) return undefined
    if (Object.hasOwn(value, "action") && Object.hasOwn(value, "signature")) {
      const whole = withAction(value)
      const where = Predicate.isString(value["action"]) ? [...path, "JSON text at \"action\""] : path
      if (where.length === 0 || !Predicate.isReadonlyObject(whole["action"])) return undefined
      return {
        text: Json.stringify(whole),
        mistake: { mistake: "wrappedBody", path: [], found: where.join(", "), expected: "the object itself" }
      }
    }
    const inner = holder(value)
    if (inner === undefined) return undefined
    const [name, member] = inner
    path.push(JSON.stringify(name))
    value = member
  }
  return undefined
}
