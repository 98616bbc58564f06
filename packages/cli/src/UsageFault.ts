/** What the caller has to change before a command can run. */
import * as Schema from "effect/Schema"

/** The command was called in a way that cannot work; one line that says what to change. */
export class UsageFault extends Schema.TaggedError<UsageFault>()("UsageFault", { message: Schema.String }) {}
