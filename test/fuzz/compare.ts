/** Compares what two gateways did with the same request, and describes the differences. */
import type { FuzzAnswer, Missing } from "./connection.ts"
import type { FuzzRequest } from "./request.ts"
import { bytesOf } from "./request.ts"

/** What one gateway did with a request; bytes that are no sound HTTP may have several answers. */
export interface Observed {
  readonly answers: ReadonlyArray<FuzzAnswer | Missing>
  /** What each upstream received, as it came. */
  readonly received: { readonly [upstream: string]: ReadonlyArray<string> }
  /** The ports of the gateway and of its upstreams. */
  readonly ports: ReadonlyArray<number>
}

const isOwn = /^(?:process|nodejs)_/u

// the metrics, whose length follows from the numbers of the process
const isMetrics = /^content-type: text\/plain; version=/imu

/**
 * A text without what differs between two processes that do the same: ports, the date, the ID that the gateway gave to the request, and
 * the metrics of the process.
 */
export const masked = (text: string, ports: ReadonlyArray<number>, requestId?: string): string => {
  const plain = text
    .replace(/(?<=(?:127\.0\.0\.1|localhost):)\d+/gu, (port) => ports.includes(Number(port)) ? "<port>" : port)
    .replace(/^(date: ).*$/imu, "$1<date>")
  const named = requestId === undefined ? plain : plain.replaceAll(requestId, "<request id>")
  return named.includes("\nprocess_")
    ? named.split("\n").map((line) => isOwn.test(line) ? line.replace(/ \S+$/u, " <value>") : line).join("\n")
    : named
}

// calls that are under way together end in any order, and the metrics are listed in the order of their first use
const ordered = (text: string): string => text.startsWith("# HELP") ? text.split("\n").toSorted().join("\n") : text

type Part = readonly [name: string, text: string]

const partsOfAnswer = (answer: FuzzAnswer | Missing, sent: string, ports: Observed["ports"]): ReadonlyArray<Part> => {
  if (typeof answer === "string") return [["answer", answer]]
  const { body, head, headers } = answer
  const id = headers.get("x-request-id")
  const own = id === undefined || sent.includes(id) ? undefined : id
  const fixed = isMetrics.test(head) ? head.replace(/^(content-length: ).*$/imu, "$1<length>") : head
  return [["head", masked(fixed, ports, own)], ["body", ordered(masked(body.toString("latin1"), ports, own))]]
}

/** What an upstream received. Calls that are under way together are numbered as they start, and arrive in any order. */
const requestsTo = (texts: ReadonlyArray<string>, isOne: boolean): ReadonlyArray<string> =>
  isOne ? texts : texts.map((text) => text.replaceAll(/"id":\d+/gu, `"id":<number>`)).toSorted()

const partsOf = ({ answers, ports, received }: Observed, sent: string, isOne: boolean): ReadonlyMap<string, string> => {
  const parts = new Map([["number of answers", String(answers.length)]])
  for (const [at, answer] of answers.entries()) {
    for (const [name, text] of partsOfAnswer(answer, sent, ports)) parts.set(`answer ${at + 1}, ${name}`, text)
  }
  for (const [upstream, texts] of Object.entries(received)) {
    parts.set(`number of requests to ${upstream}`, String(texts.length))
    for (const [at, text] of requestsTo(texts, isOne).entries()) {
      parts.set(`request ${at + 1} to ${upstream}`, masked(text, ports))
    }
  }
  return parts
}

const excerpt = (text: string, from: number): string =>
  `${from > 0 ? "…" : ""}${JSON.stringify(text.slice(from, from + 240))}${text.length > from + 240 ? "…" : ""}`

const linesOnlyIn = (text: string, other: string): ReadonlyArray<string> => {
  const known = new Set(other.split("\r\n"))
  return text.split("\r\n").filter((line) => !known.has(line))
}

const describe = (name: string, ours: string | undefined, theirs: string | undefined): ReadonlyArray<string> => {
  if (ours === undefined || theirs === undefined) {
    return [`  ${name}: only ${ours === undefined ? "theirs" : "ours"}: ${excerpt(ours ?? theirs ?? "", 0)}`]
  }
  const lines = [
    ...linesOnlyIn(ours, theirs).map((line) => `    ours:   ${excerpt(line, 0)}`),
    ...linesOnlyIn(theirs, ours).map((line) => `    theirs: ${excerpt(line, 0)}`)
  ]
  if (name.endsWith("head") && lines.length > 0) return [`  ${name}:`, ...lines]
  let at = 0
  while (at < ours.length && ours[at] === theirs[at]) at++
  const from = Math.max(0, at - 60)
  return [
    `  ${name} (${ours.length} and ${theirs.length} bytes), from byte ${at}:`,
    `    ours:   ${excerpt(ours, from)}`,
    `    theirs: ${excerpt(theirs, from)}`
  ]
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1")

/** The lines that describe all differences, or none if the two gateways did the same. */
export const differences = (
  request: FuzzRequest,
  ours: Observed,
  theirs: Observed
): ReadonlyArray<string> => {
  const sent = text(bytesOf(request))
  // the parts of a batch and of a range of logs are under way together
  const isOne = !/\r\n\r\n(?:\d+\r\n)?\s*\[|eth_getLogs|content-encoding/u.test(sent)
  const [our, their] = [partsOf(ours, sent, isOne), partsOf(theirs, sent, isOne)]
  const found = [...new Set([...our.keys(), ...their.keys()])].flatMap((name) => {
    const [one, other] = [our.get(name), their.get(name)]
    return one === other ? [] : describe(name, one, other)
  })
  return found.length === 0 ? [] : [`  sent: ${excerpt(sent, 0)}`, ...found]
}
