import * as fs from "node:fs"
import { Comment, Converter, ReflectionKind } from "typedoc"

/** The docstring that begins a file. typedoc reads it only behind a tag that no other tool needs. */
const docstringOf = (file) => {
  const [, text = ""] = /^\/\*\*([^]*?)\*\//u.exec(fs.readFileSync(file, "utf8")) ?? []
  return text.replaceAll(/^ *\* ?/gmu, "").replaceAll(/\{@link ([^}|]+)(?:\|[^}]*)?\}/gu, "`$1`").trim()
}

/** Names each module as a program imports it, `@trigate/upstream/limits/RateLimiter`, and shows its docstring. */
export const load = (app) => {
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    if (!reflection.kindOf(ReflectionKind.Module)) return
    const file = context.getSymbolFromReflection(reflection)?.declarations?.[0]?.fileName
    reflection.name = reflection.name.replace(/^([a-z0-9]+)\/src\//u, "@trigate/$1/")
    if (file !== undefined) reflection.comment = new Comment([{ kind: "text", text: docstringOf(file) }])
  })
}
