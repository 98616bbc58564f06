/**
 * Marks what the top level of a module computes as pure, so that a bundler drops what nothing uses.
 *
 * A mark on the call alone is not enough: `decode(schema.request)` reads a property and `{ ...fields }` copies some, which
 * a bundler has to take for effects. So the whole expression becomes the body of one pure call, which minifiers inline again.
 */
import { type NodePath, type PluginObj, types as t } from "@babel/core"

/** Expressions that a bundler drops without being told. */
const isPlain = (node: t.Node): boolean =>
  t.isLiteral(node) && !t.isTemplateLiteral(node) || t.isIdentifier(node) || t.isFunction(node)

/** Whether an `await` stands in it, which the body of a function that is not asynchronous could not have. */
const awaits = (path: NodePath): boolean => {
  let found = false
  path.traverse({
    AwaitExpression: () => {
      found = true
    }
  })
  return found
}

const mark = (path: NodePath<t.Expression>): void => {
  if (isPlain(path.node) || awaits(path)) return
  const call = t.callExpression(t.arrowFunctionExpression([], path.node), [])
  path.replaceWith(t.addComment(call, "leading", "#__PURE__"))
}

/** Whether a scope is that of a module. */
const isTop = ({ scope }: NodePath): boolean => scope.getProgramParent() === scope

export const plugin: PluginObj = {
  visitor: {
    VariableDeclarator: (path) => {
      const init = path.get("init")
      if (isTop(path) && init.isExpression()) mark(init)
    },
    Class: (path) => {
      const { parentPath } = path
      const parent = path.get("superClass")
      if (isTop(parentPath) && parent.isExpression()) mark(parent)
      for (const member of path.get("body").get("body")) {
        if (!isTop(parentPath) || !member.isClassProperty() || !member.node.static) continue
        const value = member.get("value")
        if (value.isExpression()) mark(value)
      }
    }
  }
}
