/** A card with a table, which scrolls separately if it is wider than the window. */
import type { ComponentChildren } from "preact"

/** Renders the card; shows `empty` instead of a table without rows. */
export const Table = (
  { columns, empty, rows, title }: {
    readonly title: string
    readonly columns: ReadonlyArray<string>
    readonly rows: ReadonlyArray<{ readonly key: string; readonly cells: ReadonlyArray<ComponentChildren> }>
    readonly empty: string
  }
) => (
  <section class="card" aria-label={title}>
    <h2>{title}</h2>
    {rows.length === 0 ?
      <p class="muted">{empty}</p> :
      (
        <div class="scroll" tabIndex={0} role="region" aria-label={`${title}, table`}>
          <table>
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
      )}
  </section>
)
