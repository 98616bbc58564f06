/** A tracer that stores its spans, and formats their tree as text. */
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"

const formatStatus = ({ status }: Tracer.NativeSpan): string => {
  if (status._tag === "Started") return "open"
  return status.exit._tag === "Success" ? "ok" : Cause.hasInterruptsOnly(status.exit.cause) ? "interrupted" : "error"
}

const formatAttributes = (span: Tracer.NativeSpan): string =>
  [...span.attributes].map(([name, value]) => ` ${name}=${String(value)}`).toSorted().join("")

/**
 * Makes a tracer. Returns the tracer with its spans, the tree of the spans, and all text that an exporter could export.
 */
export const make = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  const below = (parent: string | undefined, depth: number): ReadonlyArray<string> =>
    spans.filter((span) => Option.getOrUndefined(span.parent)?.spanId === parent).flatMap((span) =>
      [`${"  ".repeat(depth)}${span.name} [${span.kind}, ${formatStatus(span)}]${formatAttributes(span)}`]
        .concat(below(span.spanId, depth + 1))
    )
  return {
    tracer,
    spans,
    /** Formats one line for each span, below the line of the span's parent: name, kind, result, attributes. */
    tree: (parent?: string) => below(parent, 0),
    /** Returns all text of the spans: names, attributes, events, links and failures. */
    text: () =>
      spans.map((span) =>
        [
          span.name,
          formatAttributes(span),
          JSON.stringify(span.events.map(([name, , attributes]) => [name, attributes])),
          JSON.stringify(span.links.map(({ attributes }) => attributes)),
          span.status._tag === "Ended" && span.status.exit._tag === "Failure"
            ? Cause.pretty(span.status.exit.cause)
            : ""
        ].join("\n")
      ).join("\n")
  }
}
