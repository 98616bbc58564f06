/** The rules of this repository that oxlint has no name for. */

interface Context {
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

export default { meta: { name: "trigate" }, rules: { "no-try": noTry } }
