/**
 * The latest rows of a topic. Callers that join later receive them, and new rows are compared with them to detect
 * duplicates.
 */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import type { Row } from "../../streams/Topic.ts"

/**
 * Returns a copy of a text. The copy shares no memory with the text, whereas a substring would retain the whole text in
 * memory.
 */
const copyText = (text: string): string => Utf8.decodeLossy(Utf8.encode(text))

const copyRow = ({ id, text, time }: Row): Row => {
  const copied = copyText(text)
  return { id: id === text ? copied : id, text: copied, time }
}

/**
 * The latest rows of a topic, up to a maximum number. During a refill it contains all rows, because a refill may repeat
 * buffered frames.
 */
export class RowHistory {
  readonly #most: number
  #isTrimmed = true
  #trimmedUntil = 0
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

  /**
   * Returns whether a row is not newer than the newest dropped row, so that it may have been delivered and dropped
   * before.
   */
  isTrimmed({ time }: Row): boolean {
    return time > 0 && time <= this.#trimmedUntil
  }

  /** Adds rows. Returns the rows that were not added before. */
  add(rows: ReadonlyArray<Row>): ReadonlyArray<Row> {
    const fresh = rows.filter(({ id }) => !this.#ids.has(id))
    // the rows are copied, because a few of them would otherwise retain the whole text of a long snapshot
    const retained = fresh.length === rows.length ? fresh : fresh.map(copyRow)
    for (const row of retained) {
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
    if (surplus <= 0) return
    for (const { id, time } of this.#rows.splice(0, surplus)) {
      this.#ids.delete(id)
      this.#trimmedUntil = Math.max(this.#trimmedUntil, time)
    }
  }

  /** Returns the latest rows, oldest first. */
  latest(count: number): ReadonlyArray<Row> {
    return this.#rows.slice(-count)
  }
}

/** Returns the rows in order of time, oldest first. */
export const inOrder = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  let isSorted = true
  for (let index = 1; index < rows.length; index++) {
    if ((rows[index]?.time ?? 0) < (rows[index - 1]?.time ?? 0)) isSorted = false
  }
  return isSorted ? rows : rows.toSorted((a, b) => a.time - b.time)
}
