/** The elements of the page: tables, forms, line charts, confirmations and number formats. */
import { useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { now } from "./Gateway.ts"

/** Formats a duration: in milliseconds or, from one second, in seconds; with at most one decimal. */
export const duration = (seconds: number | undefined): string => {
  if (seconds === undefined) return "–"
  if (seconds === Infinity) return "> 10 s"
  const [value, unit] = seconds < 1 ? [seconds * 1000, "ms"] as const : [seconds, "s"] as const
  return `${Number(value.toFixed(value < 10 ? 1 : 0))} ${unit}`
}

/** Formats a fraction as a percentage. */
export const percent = (share: number): string => `${Number((share * 100).toFixed(1))} %`

/** Groups the thousands of a decimal text with narrow spaces. */
export const decimal = (text: string): string => {
  const [whole = "", ...places] = text.split(".")
  return [whole.replace(/\B(?=(?:\d{3})+(?!\d))/gu, "\u202f"), ...places].join(".")
}

/** Formats a count with narrow spaces between thousands. */
export const count = (value: number): string => decimal(Math.round(value).toString())

/** Formats a number with a fixed number of decimals and narrow spaces between thousands. */
export const fixed = (value: number, places = 2): string => decimal(value.toFixed(places))

/** Formats a size: without a last zero, and from a million on in millions. */
export const size = (value: number | string): string =>
  Math.abs(Number(value)) >= 1e6 ? `${fixed(Number(value) / 1e6)} M` : decimal(String(value).replace(/\.0$/u, ""))

/** Formats a number with its sign. */
export const signed = (value: number, places = 2): string => `${value < 0 ? "" : "+"}${fixed(value, places)}`

/** The class of the colour of a gain or a loss. */
export const tone = (value: number): string => value < 0 ? "bad" : value > 0 ? "good" : ""

/** Formats the time since `millis` (milliseconds since 1970) in one unit: seconds, minutes, hours or days. */
export const age = (millis: number): string => {
  const seconds = Math.max(0, (now() - millis) / 1000)
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`
  return seconds < 36 * 3600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`
}

/** Formats a time as in ISO 8601. */
export const iso = (millis: number): string => new Date(millis).toISOString()

/** Formats a date and time of day in UTC. */
export const instant = (millis: number): string => iso(millis).slice(0, 16).replace("T", " ")

/** Formats a time of day in UTC, to the millisecond. */
export const clock = (millis: number): string => iso(millis).slice(11, 23)

/** Shortens a long name to its beginning and end. */
export const short = (text: string): string => text.length < 16 ? text : `${text.slice(0, 8)}…${text.slice(-4)}`

/** Removes the backticks that mark code in a text of the gateway. */
export const plain = (text: string): string => text.replaceAll("`", "")

/** Returns the trimmed values of a submitted form, by field name. */
export const formTexts = (event: SubmitEvent): { readonly [name: string]: string } => {
  event.preventDefault()
  return event.currentTarget instanceof HTMLFormElement
    ? Object.fromEntries(
      [...new FormData(event.currentTarget)].map((
        [name, value]
      ) => [name, typeof value === "string" ? value.trim() : ""])
    )
    : {}
}

const width = 240
const height = 48

/** Draws numbers as a filled line on a scale from 0 to `top`, oldest number first. `label` is the text alternative. */
export const Spark = (
  { label, top, values }: { readonly label: string; readonly top: number; readonly values: ReadonlyArray<number> }
) => {
  const scale = top <= 0 ? 1 : top
  // a single value is a flat line
  const drawn = values.length === 1 ? [...values, ...values] : values
  const step = width / Math.max(1, drawn.length - 1)
  const points = drawn.map((value, at) =>
    `${(at * step).toFixed(1)},${(height - (Math.min(value, scale) / scale) * height).toFixed(1)}`
  )
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {values.length === 0 ? null : (
        <>
          <polygon points={`0,${height} ${points.join(" ")} ${width},${height}`} />
          <polyline points={points.join(" ")} />
        </>
      )}
    </svg>
  )
}

/** Names with values, as code; omits a name without a value. */
export const Facts = (
  { pairs }: { readonly pairs: ReadonlyArray<readonly [name: string, value: string | undefined]> }
) => (
  <dl>
    {pairs.map(([name, value]) =>
      value === undefined ? null : (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <code>{value}</code>
          </dd>
        </div>
      )
    )}
  </dl>
)

/** A value in large type with its name and a note. */
export const Tile = (
  { name, note, value }: { readonly name: string; readonly value: string; readonly note?: string }
) => (
  <div>
    <dt>{name}</dt>
    <dd>
      <strong>{value}</strong> {note === undefined ? null : <span class="muted">{note}</span>}
    </dd>
  </div>
)

/** A change to confirm: its consequences, and the change itself. */
export interface Confirmation {
  readonly title: string
  /** The name of the button that makes the change. */
  readonly verb: string
  readonly consequences: ComponentChildren
  readonly act: () => Promise<void>
}

/**
 * A modal dialog with focus on its cancel button. The browser traps the focus in the dialog, and closes the dialog with
 * Escape.
 */
const Dialog = ({ confirmation: { act, consequences, title, verb }, onEnd }: {
  readonly confirmation: Confirmation
  readonly onEnd: () => void
}) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="card" aria-labelledby="confirm-title" onClose={onEnd}>
      <h2 id="confirm-title">{title}</h2>
      {consequences}
      <p class="row">
        <button
          type="button"
          onClick={() => {
            onEnd()
            void act()
          }}
        >
          {verb}
        </button>
        <button type="button" class="plain" autofocus onClick={onEnd}>Cancel</button>
      </p>
    </dialog>
  )
}

/** Returns the open dialog, and a function that asks for a confirmation. */
export const useConfirmation = () => {
  const opened = useSignal<Confirmation | undefined>(undefined)
  const dialog = opened.value === undefined
    ? null
    : <Dialog confirmation={opened.value} onEnd={() => (opened.value = undefined)} />
  const open = (confirmation: Confirmation): void => {
    opened.value = confirmation
  }
  return [dialog, open] as const
}

/**
 * The columns and rows of a table. The first cell of a row is its heading. Texts are aligned to the left, and numbers to
 * the right.
 */
export interface Content {
  readonly columns: ReadonlyArray<string>
  /** The columns with texts, besides the first one, or whether all columns have texts. Default: none. */
  readonly text?: ReadonlyArray<string> | boolean
  readonly rows: ReadonlyArray<{ readonly key: string | number; readonly cells: ReadonlyArray<ComponentChildren> }>
}

/** The number of columns from which a phone shows each row as a list of its cells. */
const wide = 4

/** Renders a table. On a phone, a row of many columns is a list: nothing is cut. */
export const Grid = ({ columns, label, rows, text = [] }: Content & { readonly label: string }) => {
  const alignment = (column = "") => text === true || (text !== false && text.includes(column)) ? "text" : ""
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${label}, table`}>
      <table role="table" class={columns.length < wide ? "" : "wide"}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th role="columnheader" scope="col" class={alignment(column)} key={column}>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map(({ cells: [first, ...rest], key }) => (
            <tr role="row" key={key}>
              <th role="rowheader" scope="row">{first}</th>
              {rest.map((cell, at) => (
                <td
                  role="cell"
                  class={alignment(columns[at + 1])}
                  data-title={columns[at + 1]}
                  key={columns[at + 1]}
                >
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Renders a card with a table. If the table has no rows, shows `empty` instead. */
export const Table = (
  { empty, title, ...content }: Content & {
    readonly title: string
    readonly empty: ComponentChildren
  }
) => (
  <section class="card" aria-label={title}>
    <h2>{title}</h2>
    {content.rows.length === 0 ? <p class="muted">{empty}</p> : <Grid label={title} {...content} />}
  </section>
)
