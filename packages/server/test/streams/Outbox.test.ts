import { assert, describe, it } from "@effect/vitest"
import * as WebSocketFrame from "@trigate/server/unstable/streams/SocketSession"
import { Outbox } from "@trigate/server/unstable/streams/SocketSession"
import * as Net from "node:net"

/** A socket that takes nothing for the system: what was written is in its buffer, or waits. */
const unread = () => {
  const socket = new Net.Socket()
  const written: Array<string> = []
  let takes = true
  socket.write = (chunk: Uint8Array | string) => {
    written.push(Buffer.from(chunk).toString("utf8"))
    return takes
  }
  return {
    socket,
    written,
    fill: () => {
      takes = false
    },
    drain: () => {
      takes = true
      socket.emit("drain")
    }
  }
}

const unlimited = () => ({ left: Number.POSITIVE_INFINITY })

const bytes = (text: string) => new TextEncoder().encode(text)

describe("an outbox", () => {
  it("writes frames at once while the socket takes them", () => {
    const { socket, written } = unread()
    const outbox = new Outbox(socket, { frames: 2, bytes: 100 }, unlimited(), () => assert.fail("overflow"))
    outbox.push(bytes("a"), "state")
    outbox.push(bytes("b"))
    outbox.flush()
    assert.deepStrictEqual(written, ["a", "b"])
    assert.strictEqual(outbox.written, 2)
  })

  it("keeps the latest of each state for a socket that is not read, and every event in its order", () => {
    const { drain, fill, socket, written } = unread()
    const outbox = new Outbox(socket, { frames: 10, bytes: 100 }, unlimited(), () => assert.fail("overflow"))
    fill()
    outbox.push(bytes("first"))
    for (const [text, state] of [["x1", "x"], ["e1"], ["y1", "y"], ["x2", "x"], ["e2"], ["x3", "x"]] as const) {
      outbox.push(bytes(text), state)
    }
    outbox.flush()
    assert.deepStrictEqual(written, ["first"])
    assert.isTrue(outbox.isFull)
    drain()
    assert.deepStrictEqual(written, ["first", "e1", "e2", "y1", "x3"])
    assert.strictEqual(outbox.conflated, 2)
    assert.isFalse(outbox.isFull)
  })

  it("shares the bytes of a second with the caller's other sockets", () => {
    const [one, other] = [unread(), unread()]
    const allowance = { left: 10 }
    const outboxes = [one, other].map(({ socket }) =>
      new Outbox(socket, { frames: 10, bytes: 100 }, allowance, () => assert.fail("overflow"))
    )
    const pushAll = (text: string, state?: string) => {
      for (const outbox of outboxes) outbox.push(bytes(text), state)
    }
    pushAll("12345678")
    // more than is left, which counts in the next second
    assert.strictEqual(allowance.left, -6)
    pushAll("event")
    for (const state of ["state 1", "state 2"]) pushAll(state, "state")
    assert.deepStrictEqual([one.written, other.written], [["12345678"], ["12345678"]])
    assert.deepStrictEqual(outboxes.map(({ conflated, isFull }) => [conflated, isFull]), [[1, false], [1, false]])
    allowance.left = 10
    for (const outbox of outboxes) outbox.resume()
    assert.deepStrictEqual([one.written, other.written], [["12345678", "event", "state 2"], ["12345678"]])
    allowance.left = 100
    for (const outbox of outboxes) outbox.resume()
    assert.deepStrictEqual(other.written, ["12345678", "event", "state 2"])
  })

  it("says whether more waits than may because its socket is not read, or because of the bytes of a second", () => {
    const { fill, socket } = unread()
    const causes: Array<boolean> = []
    const allowance = { left: 1 }
    const outboxes = [1, 2].map(() =>
      new Outbox(socket, { frames: 1, bytes: 100 }, allowance, (isSlow) => causes.push(isSlow))
    )
    for (const text of ["first", "second", "third"]) outboxes[0]?.push(bytes(text))
    allowance.left = 100
    fill()
    for (const text of ["first", "second", "third"]) outboxes[1]?.push(bytes(text))
    assert.deepStrictEqual(causes, [false, true])
  })

  for (
    const [bound, bounds] of [["number", { frames: 2, bytes: 100 }], ["bytes", { frames: 100, bytes: 5 }]] as const
  ) {
    it(`overflows when events exceed the bound on their ${bound}, and writes nothing after that`, () => {
      const { drain, fill, socket, written } = unread()
      let overflows = 0
      const outbox = new Outbox(socket, bounds, unlimited(), () => overflows++)
      fill()
      for (const text of ["a0", "e1", "e2"]) outbox.push(bytes(text))
      assert.strictEqual(overflows, 0)
      outbox.push(bytes("e3"))
      outbox.push(bytes("e4"))
      assert.strictEqual(overflows, 1)
      drain()
      assert.deepStrictEqual(written, ["a0"])
    })
  }

  it("never overflows by states, of which it keeps one each", () => {
    const { fill, socket } = unread()
    const outbox = new Outbox(socket, { frames: 1, bytes: 10 }, unlimited(), () => assert.fail("overflow"))
    fill()
    for (let frame = 0; frame < 1000; frame++) outbox.push(bytes(`book ${frame}`), "book")
    assert.strictEqual(outbox.conflated, 998)
  })

  it("drops the states of a subscription that has ended, and of no other", () => {
    const { drain, fill, socket, written } = unread()
    const outbox = new Outbox(socket, { frames: 10, bytes: 100 }, unlimited(), () => assert.fail("overflow"))
    fill()
    outbox.push(bytes("first"))
    for (const state of ["bar#1", "bar#2", "bar2", "bar"]) outbox.push(bytes(state), state)
    outbox.forget("bar")
    drain()
    assert.deepStrictEqual(written, ["first", "bar2"])
  })
})

describe("a text frame", () => {
  for (const [length, head] of [[0, "8100"], [125, "817d"], [126, "817e007e"], [65_535, "817effff"]] as const) {
    it(`of ${length} bytes begins with ${head}`, () => {
      const frame = WebSocketFrame.textFrame("a".repeat(length))
      assert.strictEqual(Buffer.from(frame.subarray(0, head.length / 2)).toString("hex"), head)
      assert.strictEqual(frame.length, length + head.length / 2)
    })
  }

  it("of 65536 bytes has a length of 8 bytes, and counts bytes, not characters", () => {
    const frame = WebSocketFrame.textFrame("é".repeat(32_768))
    assert.strictEqual(Buffer.from(frame.subarray(0, 10)).toString("hex"), "817f0000000000010000")
  })
})
