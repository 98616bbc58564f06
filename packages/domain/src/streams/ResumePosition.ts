/**
 * The position from which a stream resumes after a lost connection. An event's ID is its position, formatted as
 * `<epoch>:<seq>`.
 */
import * as Json from "../encoding/Json.ts"
import { valueAt } from "./Subscription.ts"

/** A position in an account's event log. */
export interface ResumePosition {
  /**
   * Identifies the event log. A new epoch begins when events may be missing from the log; sequence numbers are valid
   * within one epoch only.
   */
  readonly epoch: string
  /** The sequence number of the last received event. The first event has the number 1. */
  readonly seq: number
}

const pattern = /^(?<epoch>[0-9a-zA-Z-]{1,64}):(?<seq>[0-9]{1,15})$/u

/** Formats a position as `<epoch>:<seq>`. */
export const print = ({ epoch, seq }: ResumePosition): string => `${epoch}:${seq}`

/** Parses a position; `undefined` for malformed text. */
export const parse = (text: string): ResumePosition | undefined => {
  const { epoch, seq } = pattern.exec(text)?.groups ?? {}
  return epoch === undefined || seq === undefined ? undefined : { epoch, seq: Number(seq) }
}

/**
 * The first message of a stream: the stream's current position, and whether all events since the requested position
 * follow.
 */
export interface Resumption extends ResumePosition {
  readonly recovered: boolean
}

/** The value of `channel` in the frames that report whether a stream was resumed. */
export const channel = "resume"

/** Encodes a resumption report as JSON. */
export const printResumption = ({ epoch, recovered, seq }: Resumption): string =>
  JSON.stringify({ recovered, epoch, seq })

/** Returns a frame with a position added. */
export const withPosition = (frame: string, { epoch, seq }: ResumePosition): string =>
  `${frame.slice(0, -1)},"epoch":${JSON.stringify(epoch)},"seq":${seq}}`

/** Returns the resume position that a parsed frame contains, in the frame's own members or in its `data`. */
export const ofFrame = (frame: unknown): ResumePosition | undefined => {
  const isResumption = valueAt(frame, "channel") === channel
  const epoch = valueAt(frame, isResumption ? "data.epoch" : "epoch")
  const seq = valueAt(frame, isResumption ? "data.seq" : "seq")
  return parse(`${Json.stringify(epoch ?? "").replaceAll("\"", "")}:${Json.stringify(seq ?? "")}`)
}
