/**
 * The latest rows of a topic. Callers that join later receive them, and new rows are compared with them to detect
 * duplicates.
 */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import { RowSet } from "../../streams/RowSet.ts"
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

/** Multiple of the maximum number of rows up to which rows of one time are retained together. */
const mostTied = 10

/**
 * The latest rows of a topic, up to a maximum number. During a refill it contains all rows, because a refill may repeat
 * buffered frames.
 */
export class RowHistory {
  readonly #most: number
  #isTrimmed = true
  #trimmedUntil = 0
  #rows: Array<Row> = []
  readonly #known = new RowSet()

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#rows.length
  }

  get newest(): Row | undefined {
    return this.#rows.at(-1)
  }

  /** Returns whether one of the rows of a frame was added before. */
  hasAnyOf(rows: ReadonlyArray<Row>): boolean {
    return this.#known.hasAnyOf(rows)
  }

  /**
   * Returns whether a row is not newer than the newest dropped row, so that it may have been delivered and dropped
   * before.
   */
  isTrimmed({ time }: Row): boolean {
    return time > 0 && time <= this.#trimmedUntil
  }

  /**
   * Adds the rows of one frame. Returns the rows that were not added before, and how many of these have the ID of
   * another row.
   */
  add(rows: ReadonlyArray<Row>): { readonly fresh: ReadonlyArray<Row>; readonly collisions: number } {
    const fresh = this.#known.unseen(rows)
    // the rows are copied, because a few of them would otherwise retain the whole text of a long snapshot
    const retained = fresh.length === rows.length ? fresh : fresh.map(copyRow)
    let collisions = 0
    for (const row of retained) {
      if (this.#known.add(row)) collisions++
      this.#rows.push(row)
    }
    if (this.#isTrimmed) this.trim()
    return { fresh, collisions }
  }

  /** Retains every row until the next `trim`. */
  retainAll(): void {
    this.#isTrimmed = false
  }

  /**
   * Drops the oldest rows beyond the limit. Rows of one time are dropped together: a snapshot may contain a row of that
   * time that was never received.
   */
  trim(): void {
    this.#isTrimmed = true
    let surplus = Math.max(0, this.#rows.length - this.#most)
    const oldest = this.#rows[surplus]?.time
    if (this.#rows.length < this.#most * mostTied) {
      while (surplus > 0 && this.#rows[surplus - 1]?.time === oldest) surplus--
    }
    for (const row of this.#rows.splice(0, surplus)) {
      this.#known.delete(row)
      this.#trimmedUntil = Math.max(this.#trimmedUntil, row.time)
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
