/** An EVM node that announces heads over WebSocket, and answers over HTTP. A head has the time at which the node first sent it. */
import { EvmChain } from "@trigate/testing/EvmChain"
import type { WebSocket } from "ws"

const chain = new EvmChain("benchmark", { blocks: 16 })

/** Sockets that have subscribed to heads. */
export const subscribers = new Set<WebSocket>()

/** A caller's subscription to heads. */
export const subscribeCall = { jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }

let asked = 0

/** Returns the number of requests for the newest block so far. */
export const polls = (): number => asked

let stamp: { readonly number: number; readonly text: string } | undefined

/** The newest header, with the time at which it was first sent. */
const newest = (micros: () => string): object => {
  const { head } = chain
  if (stamp?.number !== head.number) stamp = { number: head.number, text: micros() }
  return { ...chain.header(head), sz: stamp.text }
}

/** Adds a block, and returns the notification of it. */
export const mine = (micros: () => string): string => {
  chain.extend(1)
  // a node without subscribers sends the block when it is asked
  if (subscribers.size === 0) return ""
  const params = { subscription: "0x1", result: newest(micros) }
  return JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params })
}

interface Call {
  readonly id: unknown
  readonly method: string
  readonly params?: ReadonlyArray<unknown>
}

const isCall = (value: unknown): value is Call =>
  typeof value === "object" && value !== null && "jsonrpc" in value && "method" in value

/** Returns the response to a call over HTTP. */
export const respond = (text: string, micros: () => string): object => {
  const call: unknown = JSON.parse(text)
  if (!isCall(call)) throw new Error(`no call: ${text}`)
  const { id, method, params = [] } = call
  const isNewest = method === "eth_getBlockByNumber" && params[0] === "latest"
  if (isNewest) asked += 1
  return { jsonrpc: "2.0", id, ...(isNewest ? { result: newest(micros) } : chain.call(method, params)) }
}

/** Answers a message of a socket. Returns whether it is a call. */
export const answer = (socket: WebSocket, message: unknown): boolean => {
  if (!isCall(message)) return false
  const isHeads = message.params?.[0] === "newHeads"
  if (isHeads) subscribers.add(socket)
  socket.send(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: isHeads ? "0x1" : "0x2" }))
  return true
}
