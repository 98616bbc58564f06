/** The text protocol of the venue's WebSocket: parses frames, and encodes subscriptions, rows and errors. */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import type * as Topic from "@trigate/upstream/unstable/streams/Topic"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"

/** The text of a ping frame. */
export const ping = "{\"method\":\"ping\"}"

/** The text of the venue's response to a ping. */
export const pong = "{\"channel\":\"pong\"}"

/**
 * Encodes the venue's acknowledgement of a `subscribe` or `unsubscribe`; `key` is the JSON of the subscription with its
 * defaults.
 */
export const acknowledgement = (method: "subscribe" | "unsubscribe", key: string): string =>
  `{"channel":"subscriptionResponse","data":{"method":"${method}","subscription":${key}}}`

/** Encodes an error frame. The connection stays open. */
export const errorFrame = (message: string): string => JSON.stringify({ channel: "error", data: message })

/** Returns the venue's error message for a frame that the venue cannot parse. */
export const unreadable = (frame: string): string => `Error parsing JSON into valid websocket request: ${frame}`

/** Returns the venue's error message for a subscription that the venue does not accept. */
export const invalidSubscription = (json: string): string => `Invalid subscription ${json}`

/** Returns the error message for a requested subscription that does not decode; `json` is the request. */
export const unreadableSubscription = (why: Subscription.Unreadable, json: string): string =>
  why.startsWith("unknown member") ? `${invalidSubscription(json)}: ${why}` : invalidSubscription(json)

/** Encodes a frame of a channel. `data` is JSON. */
export const dataFrame = (channel: string, data: string): string =>
  `{"channel":${JSON.stringify(channel)},"data":${data}}`

/** Returns whether a coin is a spot pair: `PURR/USDC` or `@107`. */
export const isSpot = (coin: unknown): boolean => Predicate.isString(coin) && /^@|\//u.test(coin)

/** Returns the channel of a subscription's frames. */
export const channelName = ({ declaration, request }: Subscription.Normalised): string => {
  const [first = declaration.name, ofSpot = first] = Subscription.channelNames(declaration)
  return isSpot(request["coin"]) ? ofSpot : first
}

const asText = (value: unknown): string =>
  Predicate.isString(value) ? value : value === undefined || value === null ? "" : Json.stringify(value)

/** Returns the values in a frame that identify the frame's subscription. */
const shownIn = (declaration: Subscription.Subscription, read: (member: string, path: string) => unknown): string => {
  let route = declaration.name
  for (const [member, path] of Object.entries(declaration.shown)) {
    const value = asText(read(member, path))
    route += ` ${member === "user" ? value.toLowerCase() : value}`
  }
  return route
}

const byChannel = new Map(
  Subscriptions.table.flatMap((declaration) =>
    Subscription.channelNames(declaration).map((channel) => [channel, declaration] as const)
  )
)

const limits = [
  { of: "users", pattern: /^Cannot track more than (?<limit>\d+) total users/u },
  { of: "subscriptions", pattern: /^Cannot subscribe to more than (?<limit>\d+) channels/u },
  { of: "messages", pattern: /^Cannot send more than (?<limit>\d+) messages/u }
] as const

const quoted = /\{.*\}/su

/** Returns the route of a subscription that the venue names; `undefined` for an unknown subscription. */
const routeIn = (subscription: unknown): string | undefined => {
  const read = Result.getOrUndefined(Subscriptions.readAcknowledged(subscription))
  return read === undefined ? undefined : shownIn(read.declaration, (member) => read.request[member])
}

const quotedRoute = (message: string): string | undefined => {
  const value = Result.getOrUndefined(Json.parse(quoted.exec(message)?.[0] ?? ""))
  return routeIn(Predicate.hasProperty(value, "subscription") ? value.subscription : value)
}

const readError = (message: string): Topic.Incoming => {
  for (const { of, pattern } of limits) {
    const limit = pattern.exec(message)?.groups?.["limit"]
    if (limit !== undefined) return { kind: "limit", of, limit: Number(limit), message }
  }
  const route = quotedRoute(message)
  if (route !== undefined && message.startsWith("Already subscribed")) return { kind: "subscribed", route }
  if (route !== undefined && message.startsWith("Already unsubscribed")) return { kind: "unsubscribed", route }
  return { kind: "refused", route, message }
}

const readResponse = (data: unknown): Topic.Incoming => {
  const method = Subscription.valueAt(data, "method")
  const route = routeIn(Subscription.valueAt(data, "subscription"))
  return route === undefined
    ? { kind: "noise" }
    : { kind: method === "unsubscribe" ? "unsubscribed" : "subscribed", route }
}

const noise: Topic.Incoming = { kind: "noise" }

const read = (text: string): Topic.Incoming => {
  // an older version of the venue's server sends a first message that is plain text, not JSON
  const frame = Result.getOrUndefined(Json.parse(text))
  const channel = Predicate.hasProperty(frame, "channel") ? frame.channel : undefined
  const data = Predicate.hasProperty(frame, "data") ? frame.data : undefined
  if (!Predicate.isString(channel) || channel === "pong" || channel === "post") return noise
  if (channel === "subscriptionResponse") return readResponse(data)
  if (channel === "error") return Predicate.isString(data) ? readError(data) : noise
  const declaration = byChannel.get(channel)
  if (declaration === undefined) return { kind: "unknown", channel }
  const route = shownIn(declaration, (_member, path) => Subscription.valueAt(data, path))
  return declaration.stateAt === undefined
    ? { kind: "data", route }
    : { kind: "data", route, state: asText(Subscription.valueAt(data, declaration.stateAt)) }
}

/** Returns the JSON of the given member of a frame's `data`; without a member name, the JSON of `data` itself. */
const sliceMember = (text: string, member: string | undefined): string | undefined => {
  const data = Json.members(text).get("data")
  if (data === undefined || member === undefined) return data && text.slice(data.start, data.end)
  const span = Json.members(text, data.start).get(member)
  return span && text.slice(span.start, span.end)
}

const snapshotMark = /"isSnapshot"\s*:\s*true/u

const rowParser = ({ id, isInSeconds, time }: Subscription.Rows) => {
  // without a key, only rows of one time are compared
  const paths = id.length === 0 ? [time] : id
  return (text: string): Topic.Row => {
    const value = Result.getOrUndefined(Json.parse(text))
    const at = Subscription.valueAt(value, time)
    return {
      id: paths.map((path) => asText(Subscription.valueAt(value, path))).join(" "),
      text,
      time: Predicate.isNumber(at) ? at * (isInSeconds === true ? 1000 : 1) : 0
    }
  }
}

const parsers = new Map(
  Subscriptions.table.flatMap(({ name, rows }) => rows === undefined ? [] : [[name, rowParser(rows)] as const])
)

/** Parses a row of a subscription from its JSON. A row of an unknown subscription is identified by its text. */
export const parseRow = (name: string, text: string): Topic.Row =>
  parsers.get(name)?.(text) ?? { id: text, text, time: 0 }

const rowCodec = ({ declaration, request }: Subscription.Normalised): Topic.RowCodec | undefined => {
  const { rows } = declaration
  if (rows === undefined) return undefined
  const { id, member, replayed } = rows
  const [channel = declaration.name] = Subscription.channelNames(declaration)
  const parse = rowParser(rows)
  const before = member === undefined ?
    "" :
    `${"user" in declaration.shown ? `"user":${JSON.stringify(request["user"])},` : ""}"${member}":`
  return {
    replayed,
    hasKey: id.length > 0,
    read: (text) => {
      const list = sliceMember(text, member)
      const texts = list === undefined ? undefined : Json.elements(list)
      return texts && { rows: texts.map(parse), isSnapshot: member !== undefined && snapshotMark.test(text) }
    },
    write: (written, kind) => {
      const list = `[${written.map(({ text }) => text).join(",")}]`
      const data = member === undefined
        ? list
        : `{${kind === "snapshot" ? "\"isSnapshot\":true," : ""}${before}${list}}`
      return kind === "refill"
        ? `{"channel":${JSON.stringify(channel)},"data":${data},"isRefill":true}`
        : dataFrame(channel, data)
    }
  }
}

/** Makes the topic of a subscription; `refill` queries data missed while disconnected. */
export const makeTopic = (subscription: Subscription.Normalised, refill?: Topic.TopicRefill): Topic.Topic => {
  const { declaration, key, request } = subscription
  const rows = rowCodec(subscription)
  const user = request["user"]
  return {
    key,
    route: shownIn(declaration, (member) => request[member]),
    name: declaration.name,
    delivery: declaration.delivery,
    isSteady: declaration.isSteady === true,
    isHarmless: request["coin"] === undefined && (request["dex"] ?? "") === "",
    isUnshared: declaration.isUnshared === true,
    subscribe: `{"method":"subscribe","subscription":${key}}`,
    unsubscribe: `{"method":"unsubscribe","subscription":${key}}`,
    ...(declaration.about === "user" && Predicate.isString(user) ? { user } : {}),
    ...(rows === undefined ? {} : { rows }),
    ...(refill === undefined ? {} : { refill })
  }
}

/** The protocol of the venue's WebSocket. */
export const protocol: Topic.StreamProtocol = {
  ping,
  read,
  refusal: (of, limit) =>
    of === "users"
      ? `Cannot track more than ${limit} total users.`
      : of === "subscriptions"
      ? `Cannot subscribe to more than ${limit} channels.`
      : of === "messages"
      ? `Cannot send more than ${limit} messages per minute.`
      : `Cannot open more than ${limit} connections.`,
  invalid: ({ key }) => invalidSubscription(key)
}
