/** Streams of the gateway as Server-Sent Events. */
import * as Gateway from "./Gateway.ts"

/**
 * Reads the frames of subscriptions until it is stopped. An `EventSource` sends no header, so it receives no frames from a gateway
 * that requires a key. The browser reconnects by itself.
 */
export const follow = (
  subscriptions: ReadonlyArray<{ readonly type: string; readonly [member: string]: string }>,
  onFrame: (text: string) => void
): () => void => {
  if (Gateway.hasKey.value) return () => undefined
  const query = new URLSearchParams(subscriptions.map((each) => ["subscribe", JSON.stringify(each)]))
  const source = new EventSource(`streams?${query.toString()}`)
  source.addEventListener("message", ({ data }) => onFrame(String(data)))
  return () => source.close()
}
