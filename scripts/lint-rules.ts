/** The rules of this repository that oxlint has no name for. */
import * as path from "node:path"
import { mayImport } from "./arrows.ts"

interface Context {
  readonly cwd: string
  readonly filename: string
  report(finding: { readonly node: unknown; readonly message: string }): void
}

const noTry = {
  create: (context: Context) => ({
    TryStatement: (node: unknown) =>
      context.report({
        node,
        message: "A caught value has no type. Use Effect.try, Effect.tryPromise or Result.try with a typed error."
      })
  })
}

interface Importing {
  readonly source?: { readonly value?: unknown } | null
}

const arrows = {
  create: (context: Context) => {
    const file = path.relative(context.cwd, context.filename).replaceAll(path.sep, "/")
    const check = (node: Importing): void => {
      const specifier = node.source?.value
      if (typeof specifier !== "string" || mayImport(file, specifier)) return
      context.report({ node, message: `scripts/arrows.ts does not allow ${file} to import ${specifier}.` })
    }
    return {
      ExportAllDeclaration: check,
      ExportNamedDeclaration: check,
      ImportDeclaration: check,
      ImportExpression: check
    }
  }
}

export default { meta: { name: "trigate" }, rules: { arrows, "no-try": noTry } }
