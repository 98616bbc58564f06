/** The errors of typed streams. */
import * as Schema from "effect/Schema"

/**
 * The subscription was refused. `message` is the error text of the venue or of the gateway.
 *
 * @since 0.1.0
 * @category errors
 */
export class SubscriptionRefused extends Schema.TaggedError<SubscriptionRefused>()("SubscriptionRefused", {
  message: Schema.String,
  subscription: Schema.String
}) {}

/**
 * A frame of the stream does not decode. The typed stream ends. Callers of `/ws` receive such a frame unchanged.
 *
 * @since 0.1.0
 * @category errors
 */
export class MalformedFrame extends Schema.TaggedError<MalformedFrame>()("MalformedFrame", {
  message: Schema.String,
  frame: Schema.String
}) {}

/**
 * The reader of the stream is too slow: its queue is full, and events would have to be dropped.
 *
 * @since 0.1.0
 * @category errors
 */
export class SlowConsumer extends Schema.TaggedError<SlowConsumer>()("SlowConsumer", { message: Schema.String }) {}

/**
 * The connection of the stream was lost or could not be opened. To continue without a gap, query the events since the
 * last received frame.
 *
 * @since 0.1.0
 * @category errors
 */
export class StreamLost extends Schema.TaggedError<StreamLost>()("StreamLost", {
  /** The close code; 1006 if the connection closed without one. */
  code: Schema.Int,
  message: Schema.String
}) {}

/** The errors of a typed stream. */
export type StreamError = SubscriptionRefused | MalformedFrame | SlowConsumer
