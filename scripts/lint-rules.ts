/** The rules of this repository that oxlint has no name for. */
import * as path from "node:path"
import { mayImport } from "./arrows.ts"
import type { Construction } from "./prose/constructions.ts"
import { findIn } from "./prose/constructions.ts"

interface Context {
  readonly cwd: string
  readonly filename: string
  readonly sourceCode: { getAllComments(): ReadonlyArray<{ readonly value: string }> }
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

interface Named {
  readonly id?: { readonly type?: string; readonly name?: string } | null
}

/** A message is a text of three words or more; anything shorter may be a value of a protocol. */
const isMessage = (text: unknown): text is string => typeof text === "string" && /\S\s+\S+\s+\S/u.test(text)

/** Constructions of comments, messages and names that are hard to read: `scripts/check-prose.ts` counts them. */
const prose = {
  create: (context: Context) => {
    const report = (node: unknown, kind: Construction["kind"], value: string): void => {
      for (const { instead, name } of findIn(kind, value)) {
        context.report({ node, message: `${name}: write ${instead}` })
      }
    }
    const name = (kind: Construction["kind"]) => (node: Named): void => {
      if (node.id?.type === "Identifier" && node.id.name !== undefined) report(node, kind, node.id.name)
    }
    return {
      Program: () => {
        for (const comment of context.sourceCode.getAllComments()) report(comment, "text", comment.value)
      },
      Literal: (node: { readonly value?: unknown }) => {
        if (isMessage(node.value)) report(node, "text", node.value)
      },
      TemplateElement: (node: { readonly value: { readonly cooked?: string | null } }) => {
        if (isMessage(node.value.cooked)) report(node, "text", node.value.cooked)
      },
      FunctionDeclaration: name("function"),
      VariableDeclarator: name("function"),
      TSInterfaceDeclaration: name("type"),
      TSTypeAliasDeclaration: name("type")
    }
  }
}

export default { meta: { name: "trigate" }, rules: { arrows, "no-try": noTry, prose } }
