/** Where a stream continues after its connection was lost: the id of its events, `<epoch>:<seq>`. */
import * as Json from "../encoding/Json.ts"
import { valueAt } from "./Subscription.ts"

/** A place in an event log. */
export interface ResumePosition {
  /** Names the log; sequence numbers of another epoch mean nothing here. */
  readonly epoch: string
  /** The number of the last event that was received; events are numbered from 1. */
  readonly seq: number
}

const pattern = /^(?<epoch>[0-9a-zA-Z-]{1,64}):(?<seq>[0-9]{1,15})$/u

/** Prints a position as `<epoch>:<seq>`. */
export const print = ({ epoch, seq }: ResumePosition): string => `${epoch}:${seq}`

/** Returns the position in a text; undefined for a text that is not one. */
export const parse = (text: string): ResumePosition | undefined => {
  const { epoch, seq } = pattern.exec(text)?.groups ?? {}
  return epoch === undefined || seq === undefined ? undefined : { epoch, seq: Number(seq) }
}

/** What a stream says first: whether everything since the requested position follows, and where it is now. */
export interface Resumption extends ResumePosition {
  readonly recovered: boolean
}

/** The channel of the frames that tell whether a stream was resumed. */
export const channel = "resume"

/** The JSON that says whether a stream was resumed. */
export const printResumption = ({ epoch, recovered, seq }: Resumption): string =>
  JSON.stringify({ recovered, epoch, seq })

/** Adds its position to a frame. */
export const withPosition = (frame: string, { epoch, seq }: ResumePosition): string =>
  `${frame.slice(0, -1)},"epoch":${JSON.stringify(epoch)},"seq":${seq}}`

/** Returns the position that a parsed frame shows, in its own members or in its `data`. */
export const ofFrame = (frame: unknown): ResumePosition | undefined => {
  const isResumption = valueAt(frame, "channel") === channel
  const epoch = valueAt(frame, isResumption ? "data.epoch" : "epoch")
  const seq = valueAt(frame, isResumption ? "data.seq" : "seq")
  return parse(`${Json.stringify(epoch ?? "").replaceAll("\"", "")}:${Json.stringify(seq ?? "")}`)
}
