/** The queries about an account whose responses are contained in the frames of a subscription. */
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as InfoProtocol from "@trigate/domain/info/InfoProtocol"
import type { InfoCall } from "@trigate/domain/info/InfoProtocol"
import { briefOrder } from "@trigate/domain/info/Order"
import type * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import { valueAt } from "@trigate/domain/streams/Subscription"
import type { AnsweredQuery, Subscription } from "@trigate/domain/streams/Subscription"
import * as Subscriptions from "@trigate/domain/streams/Subscriptions"
import type { Frame } from "@trigate/upstream/streams/Topic"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"

/**
 * The queries that the account mirror serves, by name, each with the subscription whose frames contain its response.
 */
export const answered: ReadonlyMap<string, { readonly declaration: Subscription; readonly answer: AnsweredQuery }> =
  new Map(
    Subscriptions.table.flatMap((declaration) =>
      (declaration.answers ?? []).map((answer) => [answer.query, { declaration, answer }] as const)
    )
  )

/** A query that the account mirror can serve. */
export interface MirroredQuery {
  readonly user: string
  /** The key of the subscription whose frames contain the response to the query. */
  readonly topicKey: string
  /** Whether the subscription is opened for every watched account. */
  readonly isRecorded: boolean
}

/**
 * Returns the key of a user's subscription, with the venue's default values for its other parameters. Returns
 * `undefined` if the subscription requires a further parameter, such as a coin.
 */
export const topicKey = (type: string, user: string): string | undefined =>
  Result.getOrUndefined(Subscriptions.read({ type, user }))?.key

const anyUser = `0x${"0".repeat(40)}`

/**
 * Returns the names of the subscriptions whose frames contain responses to queries. If `isRecorded` is true, returns
 * only the subscriptions that are opened for every watched account; otherwise only those that callers open.
 */
export const stateNames = (isRecorded: boolean): ReadonlyArray<string> =>
  Subscriptions.table.flatMap(({ answers, delivery, name }) =>
    answers !== undefined && delivery === "state" && (topicKey(name, anyUser) !== undefined) === isRecorded
      ? [name]
      : []
  )

/**
 * Returns the account and the subscription of a query that the account mirror can serve; `undefined` for any other
 * query.
 */
export const mirroredQuery = ({ body, operation, surface }: InfoCall): MirroredQuery | undefined => {
  const found = answered.get(operation.name)
  const query = body.valueOrUndefined
  if (found === undefined || surface !== "gateway" || !Predicate.isObject(query)) return undefined
  const { name, shown } = found.declaration
  const members = Object.entries(query).filter(([member]) => member !== "type")
  if (!members.every(([member, value]) => member in shown && Predicate.isString(value))) return undefined
  const read = Result.getOrUndefined(Subscriptions.read({ ...query, type: name }))
  const user = read?.request["user"]
  if (read === undefined || !Predicate.isString(user)) return undefined
  const recorded = topicKey(name, user)
  return recorded === undefined || recorded === read.key
    ? { user, topicKey: read.key, isRecorded: recorded !== undefined }
    : undefined
}

/**
 * Returns the detailed variant of a brief query: `frontendOpenOrders` for `openOrders`. The detailed response contains
 * all data of the brief response.
 */
export const detailedQuery = (query: string): string | undefined => {
  const brief = answered.get(query)
  return brief?.answer.isBrief === true
    ? brief.declaration.answers?.find(({ isBrief, member }) => isBrief !== true && member === brief.answer.member)
      ?.query
    : undefined
}

/** Converts the orders in the response to a detailed query to the response to the brief query. */
const briefOrders = (orders: string): string => {
  const rows = (Json.elements(orders) ?? []).map((order) =>
    Json.stringify(briefOrder(Result.getOrUndefined(Json.parse(order))))
  )
  return `[${rows.join(",")}]`
}

/** Converts the response to a detailed query to the response to its brief variant. */
export const brief = (response: UpstreamResponse.UpstreamResponse): UpstreamResponse.UpstreamResponse =>
  response.status === 200 ? response.with({ body: Utf8.encode(briefOrders(response.text)) }) : response

/** Parses a query that the account mirror itself makes, and that is therefore always valid. */
export const parseQuery = (body: Json.Json): Effect.Effect<InfoCall> =>
  Effect.orDie(InfoProtocol.parseCall(body, "gateway", true))

/** Returns the query whose response the frames of a subscription contain. */
export const queryFor = (type: string, key: string) => {
  const request = Result.getOrUndefined(Json.parse(key))
  const members = Object.keys(answered.get(type)?.declaration.shown ?? {})
  return { type, ...Object.fromEntries(members.map((member) => [member, valueAt(request, member)])) }
}

/**
 * Returns the responses that a frame contains, by query. Omits the responses to brief queries, because they are derived
 * from the detailed responses at each read.
 */
export const responsesIn = ({ text, topic }: Frame): ReadonlyArray<readonly [query: string, json: string]> => {
  const data = Json.members(text).get("data")
  const members = data === undefined ? undefined : Json.members(text, data.start)
  return [...answered].flatMap(([query, { answer, declaration }]) => {
    if (declaration.name !== topic.name || answer.member === undefined || answer.isBrief === true) return []
    const span = answer.member === "" ? data : members?.get(answer.member)
    return span === undefined ? [] : [[query, text.slice(span.start, span.end)] as const]
  })
}
