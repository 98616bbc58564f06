/** The refusal to say what a signature over an action would cover. */
import * as Schema from "effect/Schema"

/**
 * An action whose signed bytes cannot be told, so that no signer can be either.
 *
 * `documentedForm`: a form that the documents show and the venue does not take. `shape`: a member missing, of the wrong
 * type or out of range. `otherNetwork`: signed for another network than the profile's. `unknownType`: user-signed, but
 * of a type whose fields are not known here. `path` leads to the member.
 */
export class UnsignableAction extends Schema.TaggedError<UnsignableAction>()("UnsignableAction", {
  reason: Schema.Literals(["documentedForm", "shape", "otherNetwork", "unknownType"]),
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  detail: Schema.String
}) {
  override get message() {
    return this.detail
  }

  /** The same refusal, seen from the container that holds the action under `prefix`. */
  within(...prefix: ReadonlyArray<string | number>): UnsignableAction {
    return new UnsignableAction({ reason: this.reason, path: [...prefix, ...this.path], detail: this.detail })
  }
}

/** A `shape` refusal of one member. */
export const wrongShape = (path: string, expected: string): UnsignableAction =>
  new UnsignableAction({ reason: "shape", path: [path], detail: `"${path}" must be ${expected}` })
