/** A gateway's stream of Server-Sent Events, which resumes after a lost connection. */
import { servedFailures, UpstreamUnavailable, wrapReason } from "@trigate/domain/errors/GatewayError"
import type { CallFailure, WrapReason } from "@trigate/domain/errors/GatewayError"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Connection, label } from "../Connection.ts"
import { unreachable } from "./Served.ts"

/** The request of an event stream, and its decoders. */
export interface Options<Item extends Operation.AnyCodec, Failures extends ReadonlyArray<Operation.AnyCodec>> {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** The position after which the stream begins, sent as the query parameter `after`. */
  readonly after: string | undefined
  /** The name of the events that contain items. */
  readonly event: string
  readonly item: Item
  /** The errors of the stream in addition to those of every call. */
  readonly failures: Failures
}

interface Failure {
  readonly _tag: string
  readonly group: string
}

/** The pauses between connection attempts. */
const pauses: Schedule.Schedule<unknown, Failure> = Schedule.min([
  Schedule.exponential("500 millis"),
  Schedule.spaced("30 seconds")
])

const ended = new UpstreamUnavailable({ upstream: label, attempts: 1, detail: "The gateway ended the stream" })

const isTransient = ({ _tag, group }: Failure): boolean => group === "retry-later" && _tag !== "UpstreamMalformed"

/**
 * Opens an event stream. After a lost connection, or an error of the group `retry-later`, it reconnects and resumes
 * after the last received event, with pauses of up to 30 seconds. Any other error ends the stream.
 */
export const open = <
  Item extends Operation.AnyCodec,
  const Failures extends ReadonlyArray<Operation.AnyCodec & { readonly Type: Failure }>
>(
  options: Options<Item, Failures>
): Stream.Stream<Item["Type"], CallFailure | WrapReason<Failures[number]["Type"]>, Connection> => {
  const { event, failures, item, path, query } = options
  const problem = Schema.Union([...servedFailures, ...failures])
  const decodeItem = Schema.decodeUnknownEffect(Schema.fromJsonString(item))
  const decodeProblem = Schema.decodeUnknownOption(Schema.fromJsonString(problem))
  const readProblem = Operation.problemReader(problem)
  return Stream.suspend(() => {
    let position = options.after
    const read = Effect.fnUntraced(function*({ data, event: name, id }: Sse.Event) {
      if (name === "problem") {
        return yield* Effect.fail(
          Option.getOrElse(
            decodeProblem(data),
            () => Operation.malformed(label, "Expected problem details as JSON (RFC 9457)")
          )
        )
      }
      const items = name === event
        ? [yield* Effect.mapError(decodeItem(data), ({ message }) => Operation.malformed(label, message))]
        : []
      if (id !== undefined) position = id
      return items
    })
    const connected = Stream.unwrap(Effect.gen(function*() {
      const { chains } = yield* Connection
      const parameters = new URLSearchParams({ ...query, ...(position === undefined ? {} : { after: position }) })
      const opened = yield* Effect.mapError(chains.open(`${path}?${parameters}`), unreachable)
      if (opened.refusal !== undefined) {
        const { refusal } = opened
        return yield* Effect.fail(Option.getOrElse(readProblem(refusal), () => Operation.failureOfStatus(refusal)))
      }
      return opened.stream.pipe(
        Stream.mapError(unreachable),
        Stream.decodeText(),
        Stream.pipeThroughChannel(Sse.decode<UpstreamUnavailable, unknown>()),
        Stream.mapError((error) =>
          error._tag === "SseError" || error._tag === "Retry" ? Operation.malformed(label, "Expected events") : error
        ),
        Stream.mapEffect(read),
        Stream.flattenIterable,
        Stream.concat(Stream.fail(ended))
      )
    }))
    return connected.pipe(
      Stream.retry(Schedule.while(pauses, ({ input }) => isTransient(input))),
      Stream.mapError(wrapReason)
    )
  })
}
