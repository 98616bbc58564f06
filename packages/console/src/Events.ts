/** Streams of the gateway as Server-Sent Events. */
import * as Gateway from "./Gateway.ts"

/** Subscriptions of a stream, in the venue's form. */
export type Subscriptions = ReadonlyArray<{ readonly type: string; readonly [member: string]: string }>

/** Reads the frames of subscriptions until `stop` of the result is called. */
export const follow = (subscriptions: Subscriptions, onFrame: (text: string) => void): Gateway.Listening => {
  const query = new URLSearchParams(subscriptions.map((each) => ["subscribe", JSON.stringify(each)]))
  return Gateway.listen(`/streams?${query.toString()}`, onFrame)
}
