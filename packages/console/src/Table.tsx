/** Tables. A table that is wider than the window scrolls; the rest of the page does not. */
import type { ComponentChildren } from "preact"

/** The columns and rows of a table. The first cell of a row is its heading. */
export interface Content {
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<{ readonly key: string | number; readonly cells: ReadonlyArray<ComponentChildren> }>
}

/** Renders a table. If `isText` is set, aligns its cells to the left, otherwise to the right. */
export const Grid = (
  { columns, isText = false, label, rows }: Content & { readonly label: string; readonly isText?: boolean }
) => (
  <div class="scroll" tabIndex={0} role="region" aria-label={`${label}, table`}>
    <table class={isText ? "text" : ""}>
      <thead>
        <tr>{columns.map((column) => <th scope="col" key={column}>{column}</th>)}</tr>
      </thead>
      <tbody>
        {rows.map(({ cells: [first, ...rest], key }) => (
          <tr key={key}>
            <th scope="row">{first}</th>
            {rest.map((cell, at) => <td key={columns[at + 1]}>{cell}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

/** Renders a card with a table. If the table has no rows, shows `empty` instead. */
export const Table = (
  { columns, empty, isText = false, rows, title }: Content & {
    readonly title: string
    readonly empty: ComponentChildren
    readonly isText?: boolean
  }
) => (
  <section class="card" aria-label={title}>
    <h2>{title}</h2>
    {rows.length === 0
      ? <p class="muted">{empty}</p>
      : <Grid label={title} columns={columns} rows={rows} isText={isText} />}
  </section>
)
