/** How a typed stream can end, or be refused. */
import * as Schema from "effect/Schema"

/**
 * The subscription was refused, in the words of the venue or of the gateway.
 *
 * @since 0.1.0
 * @category errors
 */
export class SubscriptionRefused extends Schema.TaggedError<SubscriptionRefused>()("SubscriptionRefused", {
  message: Schema.String,
  subscription: Schema.String
}) {}

/**
 * A frame of the stream does not decode. The stream ends, and callers of `/ws` still get the frame as received.
 *
 * @since 0.1.0
 * @category errors
 */
export class MalformedFrame extends Schema.TaggedError<MalformedFrame>()("MalformedFrame", {
  message: Schema.String,
  frame: Schema.String
}) {}

/**
 * The reader of the stream fell so far behind that events would have to be dropped.
 *
 * @since 0.1.0
 * @category errors
 */
export class SlowConsumer extends Schema.TaggedError<SlowConsumer>()("SlowConsumer", { message: Schema.String }) {}

/**
 * The connection of the stream was lost or could not be opened. Read again everything since its last frame.
 *
 * @since 0.1.0
 * @category errors
 */
export class StreamLost extends Schema.TaggedError<StreamLost>()("StreamLost", {
  /** The close code; 1006 if the connection closed without one. */
  code: Schema.Int,
  message: Schema.String
}) {}

/** How a typed stream can fail. */
export type StreamError = SubscriptionRefused | MalformedFrame | SlowConsumer
