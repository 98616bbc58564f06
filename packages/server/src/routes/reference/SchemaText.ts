/** Renders JSON schemas as types in the notation of TypeScript, in HTML, and makes examples of them. */
import * as Predicate from "effect/Predicate"

/** A JSON schema. */
export interface JsonSchema {
  readonly [member: string]: unknown
}

/** Schemas by name. */
export interface Definitions {
  readonly [name: string]: JsonSchema
}

/** Escapes text for HTML, also inside of a quoted attribute. */
export const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("\"", "&quot;")

const isSchema = (value: unknown): value is JsonSchema => Predicate.isObject(value) && !Array.isArray(value)

const listSchemas = (value: unknown): ReadonlyArray<JsonSchema> => Array.isArray(value) ? value.filter(isSchema) : []

const listTexts = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter(Predicate.isString) : []

const prefix = "#/components/schemas/"

const refersTo = ({ $ref }: JsonSchema): string | undefined =>
  Predicate.isString($ref) && $ref.startsWith(prefix) ? $ref.slice(prefix.length) : undefined

const describe = ({ allOf, description }: JsonSchema): string | undefined =>
  Predicate.isString(description) ? description : listSchemas(allOf).map(describe).find(Predicate.isString)

/** Returns the parts of `allOf` that contain more than a description or examples. */
const parts = ({ allOf }: JsonSchema): ReadonlyArray<JsonSchema> =>
  listSchemas(allOf).filter((part) => Object.keys(part).some((name) => !["description", "examples"].includes(name)))

const renderObject = ({ additionalProperties, properties, required }: JsonSchema, indent: string): string => {
  const inner = `${indent}  `
  const needed = listTexts(required)
  const members = isSchema(properties) ? Object.entries(properties) : []
  const lines = members.flatMap(([name, member]) => {
    if (!isSchema(member)) return []
    const note = describe(member)
    const line = `${inner}${escapeHtml(name)}${needed.includes(name) ? "" : "?"}: ${renderType(member, inner)}`
    return note === undefined ? [line] : [`${inner}<i>// ${escapeHtml(note.replaceAll("\n", " "))}</i>`, line]
  })
  const others = isSchema(additionalProperties)
    ? [`${inner}[name: string]: ${renderType(additionalProperties, inner)}`]
    : []
  return lines.length + others.length === 0 ? "object" : `{\n${[...lines, ...others].join("\n")}\n${indent}}`
}

const renderArray = ({ items, prefixItems }: JsonSchema, indent: string): string => {
  const fixed = listSchemas(prefixItems)
  if (fixed.length > 0) return `[${fixed.map((item) => renderType(item, indent)).join(", ")}]`
  if (items === false) return "[]"
  const item = isSchema(items) ? renderType(items, indent) : "unknown"
  return item.includes(" | ") ? `(${item})[]` : `${item}[]`
}

/** Renders a schema as HTML; a named schema is a link to its section. */
export const renderType = (schema: JsonSchema, indent = ""): string => {
  const name = refersTo(schema)
  if (name !== undefined) return `<a href="#type-${escapeHtml(name)}">${escapeHtml(name.replace(/Encoded$/u, ""))}</a>`
  const { anyOf, enum: values, oneOf, type } = schema
  const choices = [...listSchemas(anyOf), ...listSchemas(oneOf)]
  if (choices.length > 0) return [...new Set(choices.map((choice) => renderType(choice, indent)))].join(" | ")
  if (Array.isArray(values)) return values.map((value) => escapeHtml(JSON.stringify(value))).join(" | ")
  const [part] = parts(schema)
  if (part !== undefined && type === undefined) return renderType(part, indent)
  if (type === "array") return renderArray(schema, indent)
  if (type === "object") return renderObject(schema, indent)
  return Predicate.isString(type) ? type === "integer" ? "number" : type : "unknown"
}

const first = (values: unknown): unknown => Array.isArray(values) ? values[0] : undefined

/**
 * Makes an example of a schema: the schema's first declared example; if there is none, an example with only the
 * required fields.
 */
export const makeExample = (schema: JsonSchema, definitions: Definitions, depth = 0): unknown => {
  const own = first(schema["examples"]) ?? first(schema["enum"])
  if (own !== undefined) return own
  const named = definitions[refersTo(schema) ?? ""]
  const [part] = [
    ...(named === undefined ? [] : [named]),
    ...listSchemas(schema["anyOf"]),
    ...listSchemas(schema["oneOf"]),
    ...listSchemas(schema["allOf"])
  ]
  if (depth > 8) return null
  const { items, prefixItems, properties, required, type } = schema
  if (part !== undefined && type === undefined) return makeExample(part, definitions, depth + 1)
  if (type === "object") {
    const needed = listTexts(required)
    return Object.fromEntries(
      Object.entries(isSchema(properties) ? properties : {}).flatMap(([name, member]) =>
        needed.includes(name) && isSchema(member) ? [[name, makeExample(member, definitions, depth + 1)]] : []
      )
    )
  }
  if (type === "array") {
    const fixed = listSchemas(prefixItems)
    return fixed.length > 0
      ? fixed.map((item) => makeExample(item, definitions, depth + 1))
      : isSchema(items) && Number(schema["minItems"] ?? 0) > 0
      ? [makeExample(items, definitions, depth + 1)]
      : []
  }
  if (type === "string") return ""
  if (type === "number" || type === "integer") return Math.max(0, Number(schema["minimum"] ?? 0))
  return type === "boolean" ? true : null
}

/**
 * Returns the first value that `read` finds: in a schema itself, in the schema that it refers to, or in its `allOf`
 * parts.
 */
const findIn = <A>(
  schema: JsonSchema,
  definitions: Definitions,
  read: (schema: JsonSchema) => A | undefined
): A | undefined => {
  const named = definitions[refersTo(schema) ?? ""]
  return read(schema) ??
    [...(named === undefined ? [] : [named]), ...listSchemas(schema["allOf"])]
      .map((part) => findIn(part, definitions, read)).find((found) => found !== undefined)
}

/** Returns the declared example of a schema. */
export const findExample = (schema: JsonSchema, definitions: Definitions): unknown =>
  findIn(schema, definitions, ({ examples }) => first(examples))

/** Returns the description of a schema. */
export const findDescription = (schema: JsonSchema, definitions: Definitions): string | undefined =>
  findIn(schema, definitions, ({ description }) => Predicate.isString(description) ? description : undefined)

/** An example of a body, with its title. */
export interface Example {
  readonly title: string
  readonly value: unknown
}

const exampleTitle = (value: unknown, at: number): string =>
  isSchema(value) && Predicate.isString(value["method"])
    ? value["method"]
    : isSchema(value) && Predicate.isString(value["type"])
    ? value["type"]
    : `Example ${at + 1}`

/** Returns an example of each alternative of a body. */
export const listExamples = (schema: JsonSchema, definitions: Definitions): ReadonlyArray<Example> => {
  const named = definitions[refersTo(schema) ?? ""]
  if (named !== undefined) return listExamples(named, definitions)
  const own = schema["examples"]
  const choices = [...listSchemas(schema["anyOf"]), ...listSchemas(schema["oneOf"])]
  const values: ReadonlyArray<unknown> = Array.isArray(own)
    ? own
    : choices.length === 0
    ? [makeExample(schema, definitions)]
    : choices.map((choice) => makeExample(choice, definitions))
  return values.map((value, at) => ({ title: exampleTitle(value, at), value }))
}
