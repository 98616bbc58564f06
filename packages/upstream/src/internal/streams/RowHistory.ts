/** The latest rows of a topic, for callers that join later and to detect duplicates. */
import type { Row } from "../../streams/Topic.ts"

/**
 * The latest rows of a topic, up to a maximum number. During a refill it contains all rows, because a refill may repeat
 * buffered frames.
 */
export class RowHistory {
  readonly #most: number
  #isTrimmed = true
  #rows: Array<Row> = []
  readonly #ids = new Set<string>()

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#rows.length
  }

  get newest(): Row | undefined {
    return this.#rows.at(-1)
  }

  has({ id }: Row): boolean {
    return this.#ids.has(id)
  }

  /** Adds rows. Returns those that were not added before. */
  add(rows: ReadonlyArray<Row>): ReadonlyArray<Row> {
    const fresh = rows.filter(({ id }) => !this.#ids.has(id))
    for (const row of fresh) {
      this.#ids.add(row.id)
      this.#rows.push(row)
    }
    if (this.#isTrimmed) this.trim()
    return fresh
  }

  /** Retains every row until the next `trim`. */
  retainAll(): void {
    this.#isTrimmed = false
  }

  /** Drops the oldest rows beyond the limit. */
  trim(): void {
    this.#isTrimmed = true
    const surplus = this.#rows.length - this.#most
    if (surplus > 0) { for (const { id } of this.#rows.splice(0, surplus)) this.#ids.delete(id) }
  }

  /** Returns the latest rows, oldest first. */
  latest(count: number): ReadonlyArray<Row> {
    return this.#rows.slice(-count)
  }
}

/** Returns rows oldest first. */
export const inOrder = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  let isSorted = true
  for (let index = 1; index < rows.length; index++) {
    if ((rows[index]?.time ?? 0) < (rows[index - 1]?.time ?? 0)) isSorted = false
  }
  return isSorted ? rows : rows.toSorted((a, b) => a.time - b.time)
}
