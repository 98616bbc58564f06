/** The periodic checks of open sockets and event streams: pings, progress, and the validity of keys. */
import type { CallerKeys } from "@trigate/callers/CallerKeys"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ServedEvents } from "./EventStream.ts"
import type { SocketSession } from "./SocketSession.ts"
import * as WebSocketFrame from "./WebSocketFrame.ts"

const second = 1000

/** Milliseconds between two pings. Proxies close connections that are idle for 60 seconds. */
const pingEvery = 25 * second

/**
 * Milliseconds without progress after which a socket is closed. A socket makes no progress if its full buffer does not
 * empty, or if no pong arrives.
 */
const stuckAfter = 60 * second

/** Milliseconds that a peer has to respond to a close frame. */
const closeWithin = 3 * second

/** Sends a ping if one is due. Closes the socket if it is stuck, or does not respond to a close frame. */
export const checkProgress = (session: SocketSession, at: number): void => {
  const { closedAt, connection, progress } = session
  if (closedAt !== undefined) {
    if (at - closedAt >= closeWithin) connection.destroy()
    return
  }
  const written = connection.bytesWritten - connection.writableLength
  const read = connection.bytesRead
  // written bytes show progress only while the outbox is full; otherwise the operating system might only have buffered
  // them
  if (read !== progress.read || (written !== progress.written && session.outbox.isFull)) progress.at = at
  progress.written = written
  progress.read = read
  if (at - progress.at >= stuckAfter) {
    if (session.outbox.isFull) session.close("slow")
    else connection.destroy()
  } else if (at - progress.pinged >= pingEvery && !session.outbox.isFull) {
    progress.pinged = at
    session.outbox.push(WebSocketFrame.ping)
    session.outbox.flush()
  }
}

/**
 * Checks the keys of sessions, each key once. Closes the sessions whose key is no longer valid, or whose key's scope no
 * longer allows them.
 */
export const checkKeys = (
  { check }: CallerKeys["Service"],
  sessions: Iterable<readonly [ServedEvents | SocketSession, Redacted.Redacted | undefined]>
): Effect.Effect<void> => {
  if (check === undefined) return Effect.void
  const byKey = new Map<
    string,
    { readonly key: Redacted.Redacted; readonly held: Array<ServedEvents | SocketSession> }
  >()
  for (const [session, key] of sessions) {
    if (key === undefined) continue
    const text = Redacted.value(key)
    const group = byKey.get(text)
    if (group === undefined) byKey.set(text, { key, held: [session] })
    else group.held.push(session)
  }
  return Effect.forEach(byKey.values(), ({ held, key }) =>
    Effect.matchEager(check(key), {
      onSuccess: (caller) => {
        for (const session of held) {
          session.caller = caller
          if (!session.isCoveredBy(caller)) session.close("key")
        }
      },
      onFailure: (error) => {
        // if the key store cannot be read, the sessions stay open, because their keys may be valid
        if (error._tag === "Unauthorized") { for (const session of held) session.close("key") }
      }
    }), { discard: true })
}
