/** docs/subscriptions.md: the subscriptions of the stream. */
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import type { Subscription } from "@trigate/domain/unstable/streams/Subscription"
import { table as subscriptionTable } from "@trigate/domain/unstable/streams/Subscriptions"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { code, codes, document, table } from "./markdown.ts"

/** The members of a request as it is sent. */
const membersOf = (schema: AnyCodec): ReadonlyArray<string> => {
  const { ast } = Schema.toEncoded(schema)
  const alternatives = SchemaAST.isUnion(ast) ? ast.types : [ast]
  return [
    ...new Set(
      alternatives.flatMap((each) =>
        SchemaAST.isObjects(each) ? each.propertySignatures.map(({ name }) => String(name)) : []
      )
    )
  ]
}

const refillTexts = (subscription: Subscription): string =>
  subscription.refill !== undefined
    ? code(subscription.refill.query)
    : subscription.delivery === "state"
    ? "the next state"
    : subscription.delivery === "snapshot"
    ? "the next snapshot"
    : (subscription.rows?.replayed ?? 0) > 0
    ? "the venue's replay"
    : "nothing"

/** The document. */
export const subscriptionsText = document(
  "Subscriptions",
  "The subscriptions of `GET /ws`, under the venue's own names. [Streams](streams.md#subscriptions) explains the kinds.",
  table(
    ["Type", "Members", "Kind", "Sends", "Missed data comes from"],
    subscriptionTable.map((subscription) => [
      code(subscription.name),
      codes(membersOf(subscription.request)),
      subscription.delivery,
      subscription.summary,
      refillTexts(subscription)
    ])
  )
)
