/** docs/errors.md: every error, its group and its fields. */
import { ActionRejected } from "@trigate/domain/actions/ActionOutcome"
import { StillUnknown } from "@trigate/domain/actions/Resolution"
import {
  callerFailures,
  gatewayErrors,
  requestReasons,
  rpcCodes,
  upstreamReasons
} from "@trigate/domain/errors/GatewayError"
import { errorGroups } from "@trigate/domain/errors/Problem"
import type { ErrorGroup } from "@trigate/domain/errors/Problem"
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import type * as JsonSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "../packages/manifest.ts"
import { errorLink, tagOf } from "./errorTags.ts"
import { code, codes, document, table } from "./markdown.ts"

/** The docstring of each error class: written once, where the class is declared. */
const docstrings: ReadonlyMap<string, string> = new Map(
  fs.globSync("packages/domain/src/**/*.ts", { cwd: root }).flatMap((file) =>
    [
      ...fs.readFileSync(path.join(root, file), "utf8")
        .matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\nexport class (\w+) /gu)
    ].map(([, comment = "", name = ""]) => [name, comment.replaceAll(/^ *\* ?/gmu, "").trim()] as const)
  )
)

const meaningOf = (tag: string): string => {
  const meaning = docstrings.get(tag)
  if (meaning === undefined) throw new Error(`The class ${tag} has no docstring`)
  return meaning
}

interface Member {
  readonly name: string
  readonly type: string
  readonly optional: boolean
  readonly description: string | undefined
}

const textOf = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

const isSchema = (value: unknown): value is JsonSchema.JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const resolve = (schema: unknown, definitions: JsonSchema.Definitions): JsonSchema.JsonSchema => {
  if (!isSchema(schema)) return {}
  const reference = textOf(schema["$ref"])?.split("/").at(-1)
  return reference === undefined ? schema : definitions[reference] ?? {}
}

const literalsOf = (schema: unknown): ReadonlyArray<string> =>
  isSchema(schema) && Array.isArray(schema["enum"]) ? schema["enum"].map(String) : []

const typeText = (schema: JsonSchema.JsonSchema, definitions: JsonSchema.Definitions): string => {
  if (schema["type"] === "array") return `array of ${typeText(resolve(schema["items"], definitions), definitions)}`
  if (isSchema(schema["properties"])) return code(`{ ${Object.keys(schema["properties"]).join(", ")} }`)
  const literals = literalsOf(schema)
  if (literals.length > 0) return literals.length === 1 ? codes(literals) : `one of ${codes(literals)}`
  return textOf(schema["type"]) ?? "any value"
}

const problemMembers = new Set(["_tag", "type", "title", "status", "detail", "instance"])

/** The members of an error on the wire, and the fixed ones of its problem document. */
const shapeOf = (error: AnyCodec) => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(error)
  const { properties, required } = resolve(schema, definitions)
  const entries = isSchema(properties) ? Object.entries(properties) : []
  const fixed = new Map(entries.map(([name, property]) => [name, literalsOf(property).join("")]))
  const members = entries.filter(([name]) => !problemMembers.has(name)).map(([name, property]): Member => {
    const member = resolve(property, definitions)
    return {
      name,
      type: typeText(member, definitions),
      optional: !(Array.isArray(required) && required.includes(name)),
      description: textOf(member["description"])
    }
  })
  return { members, status: fixed.get("status") ?? "", type: fixed.get("type") ?? "" }
}

const typedText = ({ description, type }: Member): string =>
  `${type}${description === undefined ? "" : `. ${description}`}`

/** The fields that several errors have with one meaning, each described once. */
const sharedFields: ReadonlyMap<string, string> = new Map(
  [...Map.groupBy(gatewayErrors.flatMap((error) => shapeOf(error).members), ({ name }) => name)].flatMap(
    ([name, members]) => {
      const [text = "", ...others] = new Set(members.map(typedText))
      return members.length > 1 && others.length === 0 && text.includes(". ") ? [[name, text] as const] : []
    }
  )
)

const memberText = (member: Member): string => {
  const { name, optional } = member
  const text = typedText(member)
  return `- ${code(name)}${optional ? ", optional" : ""}${sharedFields.get(name) === text ? "" : `: ${text}`}`
}

const errorText = (error: (typeof gatewayErrors)[number]): string => {
  const tag = error.fields._tag.schema.literal
  const { members } = shapeOf(error)
  return [
    `### ${tag}`,
    meaningOf(tag),
    ...members.length === 0 ? [] : [members.map(memberText).join("\n")]
  ].join("\n\n")
}

const errorRow = (error: (typeof gatewayErrors)[number]): ReadonlyArray<string> => {
  const tag = error.fields._tag.schema.literal
  const { status } = shapeOf(error)
  return [errorLink(tag, ""), status, String(rpcCodes[tag]), code(error.prototype.group)]
}

/** The errors that no route answers with: the embedded services and the typed client read them out of answers. */
const readErrors = [ActionRejected, StillUnknown] as const

const readErrorText = (error: (typeof readErrors)[number]): string =>
  [
    `### ${error.identifier}`,
    code(error.prototype.group satisfies ErrorGroup),
    meaningOf(error.identifier),
    shapeOf(error).members.map(memberText).join("\n")
  ].join("\n\n")

const reasonLinks = (reasons: ReadonlyArray<(typeof gatewayErrors)[number]>): string =>
  reasons.map((reason) => errorLink(tagOf(reason), "")).join(", ")

/** The document. */
export const errorsText = document(
  "Errors",
  "Every error is one class of `packages/domain`. Over HTTP it is an `application/problem+json` document (RFC 9457): `type`\n" +
    `(${code("urn:trigate:problem:invalid-request")} for ${code("InvalidRequest")}), ${
      codes(["title", "status", "detail"])
    }, then ${codes(["_tag"])} and the error's own fields. On the JSON-RPC\n` +
    "routes the same document is in `error.data`. On `/exchange` and `/info` it also has `code` (the HTTP status) and `msg`\n" +
    "(the `detail`), which the venue's SDKs read.",
  "The typed client decodes the document into this class. A gateway whose upstream is another gateway does the same, except for\n" +
    `${callerFailures.map((failure) => errorLink(tagOf(failure), "")).join(", ")}.\n` +
    "With these errors the upstream refuses the gateway, not the gateway's caller, so the gateway interprets only their HTTP status.",
  "The JSON-RPC code is -32700 for a request that is not JSON, and -32600 for one with a broken envelope; `error.data` is an\n" +
    "`InvalidRequest` in both cases. Errors that no JSON-RPC route raises have the code -32603.",
  table(
    ["Error", "HTTP", "JSON-RPC", "Group"],
    gatewayErrors.map(errorRow)
  ),
  "## Groups",
  "Each error belongs to a group, which says what a caller should do.",
  table(["Group", "What to do"], Object.entries(errorGroups).map(([group, advice]) => [code(group), advice])),
  "## Errors with a reason",
  "The error type of each method, in an embedded service or the typed client, has at most six tags. Two of these errors wrap an error from\n" +
    "the first table as their `reason`, and have its `message`, `group` and `retryAfter`. `Effect.catchReason` handles one reason,\n" +
    "`Effect.catchReasons` several. HTTP and JSON-RPC responses have only the reason.",
  table(["Error", "Reasons"], [
    ["`RequestError`: the request was refused before any of it was sent", reasonLinks(requestReasons)],
    ["`UpstreamError`: the upstream did not serve the call", reasonLinks(upstreamReasons)]
  ]),
  "## Each error and its fields",
  "Fields that several errors have:",
  [...sharedFields].map(([name, text]) => `- ${code(name)}: ${text}`).join("\n"),
  ...gatewayErrors.map(errorText),
  "## Errors that are decoded from responses",
  "Embedded services and the typed client decode the venue's response to a signed action, and fail with:",
  ...readErrors.map(readErrorText)
)
