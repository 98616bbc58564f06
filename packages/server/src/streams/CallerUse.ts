/**
 * The open sockets and event streams of each caller, and the bytes that the caller can still send and receive in the
 * current second.
 */
import type { Caller } from "@trigate/domain/Caller"
import { QuotaExceeded } from "@trigate/domain/errors/CallerError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ServedEvents } from "./EventStream.ts"
import type { Allowance } from "./Outbox.ts"
import type { Traffic } from "./SocketSession.ts"

/** The limits of one caller. */
export interface Limits {
  /** Maximum number of open sockets and event streams. */
  readonly sockets: number
  /** Maximum number of bytes per second from a caller, in total on all of its sockets. */
  readonly bytesIn: number
  readonly bytesOut: number
}

/** The open sockets and the remaining bytes of all callers. */
export interface CallerUse {
  /** Fails if a caller has the maximum number of open sockets and event streams. */
  readonly admit: (caller: Caller) => Effect.Effect<void, QuotaExceeded>
  /** Counts a socket. Returns the bytes that the socket's caller can still send and receive in the current second. */
  readonly open: (caller: Caller) => Traffic
  readonly close: (caller: Caller) => void
  /** Adds the bytes of one second to the bytes that each caller can still send and receive. */
  readonly refill: () => void
}

/** Makes the counters of callers' open sockets and remaining bytes. */
export const make = ({ bytesIn, bytesOut, sockets }: Limits): CallerUse => {
  const callers = new Map<string, Traffic & { open: number }>()
  return {
    admit: ({ id, quota }) => {
      const most = quota.sockets ?? sockets
      return (callers.get(id)?.open ?? 0) < most
        ? Exit.void
        : Exit.fail(
          new QuotaExceeded({ retryAfter: 60, detail: `This caller already has ${most} open WebSockets` })
        )
    },
    open: ({ id }) => {
      const use = callers.get(id) ?? { open: 0, in: { left: bytesIn }, out: { left: bytesOut } }
      callers.set(id, use)
      use.open++
      return use
    },
    close: ({ id }) => {
      const use = callers.get(id)
      if (use !== undefined && --use.open === 0) callers.delete(id)
    },
    refill: () => {
      for (const use of callers.values()) {
        // bytes beyond the limit are deducted from the next second
        use.in.left = Math.min(bytesIn, use.in.left + bytesIn)
        use.out.left = Math.min(bytesOut, use.out.left + bytesOut)
      }
    }
  }
}

const nothing = new Uint8Array()

/**
 * Counts bytes against a caller's allowance, and returns the bytes. While the allowance is used up, waits. Returns no
 * bytes if the stream is closed.
 */
export const charge = (stream: ServedEvents, allowance: Allowance) => (bytes: Uint8Array): Effect.Effect<Uint8Array> =>
  Effect.suspend(() => {
    stream.isThrottled = allowance.left <= 0
    if (stream.closing !== undefined) return Effect.succeed(nothing)
    if (stream.isThrottled) return Effect.andThen(Effect.sleep("1 second"), charge(stream, allowance)(bytes))
    allowance.left -= bytes.length
    return Effect.succeed(bytes)
  })
