/**
 * Decides which rows of a frame are new. Snapshots, replays and queries repeat rows that a connection already sent.
 *
 * A row repeats a known row if both have the same ID and their contents agree. A row that has only the ID of a known
 * row is new: it is delivered and counted, because a lost row is worse than a row that is sent twice.
 *
 * Contents agree if one of them only adds members to the other. The order of the members has no meaning, and `null`
 * means the same as an absent member. The venue encodes one event differently in a frame, in a snapshot and in the
 * response to a query, and its later versions add members, but none of them changes a value of a past event.
 *
 * Equal rows of one frame are different events, so a known row matches at most one row of a frame. A row that equals
 * one of an earlier frame is the same event.
 */
import * as Json from "@trigate/domain/encoding/Json"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { Row } from "./Topic.ts"

const presentMembers = (value: object): ReadonlyArray<readonly [name: string, value: unknown]> =>
  Object.entries(value).filter(([, member]) => member !== null)

const isPresent = (value: unknown): boolean => value !== null && value !== undefined

/** Returns whether one of two JSON values only adds members to the other. */
export const agree = (one: unknown, other: unknown): boolean => {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((element, index) => agree(element, other[index]))
  }
  if (!Predicate.isObject(one) || !Predicate.isObject(other)) {
    return one === other || !isPresent(one) && !isPresent(other)
  }
  const [fewer, more] = presentMembers(one).length <= presentMembers(other).length ? [one, other] : [other, one]
  return presentMembers(fewer).every(([name, value]) => agree(value, Predicate.hasProperty(more, name) && more[name]))
}

/** The parsed contents of rows that were compared, because one row is compared with all rows that have its ID. */
const contents = new WeakMap<Row, unknown>()

const parseContent = (row: Row): unknown => {
  if (!contents.has(row)) contents.set(row, Result.getOrUndefined(Json.parse(row.text)))
  return contents.get(row)
}

const hasEqualText = (one: Row, other: Row): boolean => one.text === other.text

const hasSameContent = (one: Row, other: Row): boolean => {
  const content = parseContent(one)
  return isPresent(content) && agree(content, parseContent(other))
}

/** Known rows, found by their IDs. */
export class RowSet {
  readonly #byId = new Map<string, Array<Row>>()
  #size = 0

  constructor(rows: Iterable<Row> = []) {
    for (const row of rows) this.add(row)
  }

  get size(): number {
    return this.#size
  }

  /** Adds a row. Returns whether the set already contains a row with the same ID. */
  add(row: Row): boolean {
    const known = this.#byId.get(row.id)
    this.#size++
    if (known === undefined) this.#byId.set(row.id, [row])
    else known.push(row)
    return known !== undefined
  }

  /** Deletes a row that was added. */
  delete(row: Row): void {
    const known = this.#byId.get(row.id) ?? []
    const index = known.indexOf(row)
    if (index < 0) return
    this.#size--
    known.splice(index, 1)
    if (known.length === 0) this.#byId.delete(row.id)
  }

  clear(): void {
    this.#byId.clear()
    this.#size = 0
  }

  /** Returns, for each row of one frame, the known row that it repeats. */
  match(rows: ReadonlyArray<Row>): ReadonlyArray<Row | undefined> {
    const matched = new Set<Row>()
    const find = (row: Row, isRepeat: (known: Row, row: Row) => boolean): Row | undefined => {
      const found = this.#byId.get(row.id)?.find((known) => !matched.has(known) && isRepeat(known, row))
      if (found !== undefined) matched.add(found)
      return found
    }
    // rows with equal text are matched first, so that a row with fewer members does not take the place of another
    const equal = rows.map((row) => find(row, hasEqualText))
    return rows.map((row, index) => equal[index] ?? find(row, hasSameContent))
  }

  /** Returns the rows of one frame that repeat no known row. */
  unseen(rows: ReadonlyArray<Row>): ReadonlyArray<Row> {
    if (this.#size === 0) return rows
    const matched = this.match(rows)
    return rows.filter((_, index) => matched[index] === undefined)
  }

  /** Returns the rows of one frame that repeat no known row, and deletes the known rows that the others repeat. */
  take(rows: ReadonlyArray<Row>): ReadonlyArray<Row> {
    if (this.#size === 0) return rows
    const matched = this.match(rows)
    for (const known of matched) if (known !== undefined) this.delete(known)
    return rows.filter((_, index) => matched[index] === undefined)
  }

  /** Returns whether one of the rows of a frame repeats a known row. */
  hasAnyOf(rows: ReadonlyArray<Row>): boolean {
    return this.unseen(rows).length < rows.length
  }
}
