/**
 * Compares a venue with the queries that this version declares: which query types it refuses, and which members of its
 * responses are missing or unknown. A read-only check can run these queries against a venue before a release.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as Json from "../encoding/Encoding.ts"
import * as UpstreamResponse from "../operations/Operation.ts"
import { infoOperations, passthroughOperations as operations } from "./InfoOperations.ts"
import { exampleUser, passthroughQueries } from "./InfoQueries.ts"

/** One query of the check. */
export interface DriftQuery {
  readonly type: string
  /** The maximum rate-limit weight of the query. */
  readonly weight: number
  /** The body of the request. */
  readonly body: Json.Json
  /** Whether only client libraries list the type, so that a refusal is not a difference. */
  readonly isOptional: boolean
  /** The schema of the response, if it is declared. */
  readonly response: UpstreamResponse.AnyCodec | undefined
  /** Whether the schema declares every member that is known, so that any other member is a difference. */
  readonly isComplete: boolean
}

/** The metadata queries, whose schemas declare every known member. */
const complete: ReadonlySet<string> = new Set(["meta", "allPerpMetas", "spotMeta", "perpDexs", "outcomeMeta"])

const bodyFor = (type: string, members: unknown): Json.Json =>
  Json.write({ type, ...(Predicate.isObject(members) ? members : {}) })

/** The queries of the check: each declared type once, with an example of its members. */
export const driftQueries: ReadonlyArray<DriftQuery> = [
  ...Object.values(infoOperations).map((operation): DriftQuery => ({
    type: operation.name,
    weight: UpstreamResponse.worstWeight(operation),
    body: bodyFor(operation.name, operation.example),
    isOptional: false,
    response: operation.response,
    isComplete: complete.has(operation.name)
  })),
  ...operations.map((operation): DriftQuery => {
    const { about, example, isUndocumented = false } = passthroughQueries[operation.name] ?? { about: "market" }
    return {
      type: operation.name,
      weight: UpstreamResponse.worstWeight(operation),
      body: bodyFor(operation.name, example ?? (about === "user" ? { user: exampleUser } : {})),
      isOptional: isUndocumented,
      response: undefined,
      isComplete: false
    }
  })
]

/**
 * The result of one query.
 *
 * - `served`: the venue serves the type, and the response has the declared form;
 * - `drifted`: members of the response are missing, unknown, or of another form;
 * - `refused`: the venue does not know the type, or not with these members;
 * - `absent`: as `refused`, but for a type that only client libraries list;
 * - `failed`: the venue did not serve the query for another reason, such as its rate limit.
 */
export type DriftState = "served" | "drifted" | "refused" | "absent" | "failed"

/** The result of one query, with the members that differ, such as `universe[].newMember`. */
export interface DriftFinding {
  readonly type: string
  readonly state: DriftState
  readonly missing: ReadonlyArray<string>
  readonly unknown: ReadonlyArray<string>
  /** Details for a reader; can be empty. */
  readonly detail: string
}

interface Differences {
  readonly missing: Set<string>
  readonly unknown: Set<string>
}

const join = (path: string, member: string): string => path === "" ? member : `${path}.${member}`

/** Collects the members in which a value differs from a schema. The elements of a list share one path. */
const compare = (ast: SchemaAST.AST, value: unknown, path: string, found: Differences): void => {
  if (value === null || value === undefined) return
  if (SchemaAST.isUnion(ast)) {
    const each = ast.types.map((type) => {
      const differences: Differences = { missing: new Set(), unknown: new Set() }
      compare(type, value, path, differences)
      return { type, differences, count: differences.missing.size + differences.unknown.size }
    }).filter(({ type }) => SchemaAST.isArrays(type) === Array.isArray(value) && !SchemaAST.isNull(type))
    const [best] = each.toSorted((one, other) => one.count - other.count)
    for (const member of best?.differences.missing ?? []) found.missing.add(member)
    for (const member of best?.differences.unknown ?? []) found.unknown.add(member)
  } else if (SchemaAST.isArrays(ast) && Array.isArray(value)) {
    for (const [index, element] of value.entries()) {
      const type = ast.elements[index] ?? ast.rest[0]
      if (type !== undefined) compare(type, element, `${path}[]`, found)
    }
  } else if (SchemaAST.isObjects(ast) && Predicate.isObject(value)) {
    // an object without declared members, such as `allMids`, may have any
    if (ast.propertySignatures.length === 0) return
    const declared = new Map(ast.propertySignatures.map(({ name, type }) => [String(name), type]))
    const given = new Map(Object.entries(value))
    for (const [member, type] of declared) {
      if (given.has(member)) compare(type, given.get(member), join(path, member), found)
      else if (!SchemaAST.isOptional(type)) found.missing.add(join(path, member))
    }
    for (const member of given.keys()) if (!declared.has(member)) found.unknown.add(join(path, member))
  }
}

/** Maximum number of characters of a detail. */
const longestDetail = 160

/** Compares the response to a query with the query's declaration. */
export const findDrift = (query: DriftQuery, response: UpstreamResponse.UpstreamResponse): DriftFinding => {
  const { isComplete, isOptional, type } = query
  const finding = (state: DriftState, detail: string): DriftFinding => ({
    type,
    state,
    missing: [],
    unknown: [],
    detail: detail.slice(0, longestDetail)
  })
  const { status } = response
  // the venue knows the type, but not the name in the example, such as a dex
  const body = query.body.valueOrUndefined
  const hasNames = Predicate.isObject(body) && Object.keys(body).length > 1
  if (hasNames && status === 500 && response.text.trim() === "null") return finding("served", "")
  if (status === 400 || status === 404 || status === 422) {
    return finding(isOptional ? "absent" : "refused", `HTTP ${status}: ${response.excerpt()}`)
  }
  if (status !== 200) return finding("failed", `HTTP ${status}: ${response.excerpt()}`)
  const { value } = response.json
  if (Result.isFailure(value)) return finding("drifted", value.failure.message)
  if (query.response === undefined) return finding("served", "")
  const found: Differences = { missing: new Set(), unknown: new Set() }
  compare(SchemaAST.toEncoded(query.response.ast), value.success, "", found)
  const missing = [...found.missing]
  const unknown = isComplete ? [...found.unknown] : []
  const decoded = Schema.decodeUnknownResult(query.response)(value.success)
  const issue = Result.isFailure(decoded) ? decoded.failure.message.split("\n").join(" ") : ""
  return missing.length + unknown.length === 0 && issue === ""
    ? finding("served", "")
    : { ...finding("drifted", missing.length > 0 ? "" : issue), missing, unknown }
}
