/** Programs that some tests need: a server, a browser, an EVM node. */

/**
 * Returns whether the tests named `what` can run. If a program is `missing`, prints why they do not run; with `CI=true`
 * throws instead, so that a green run means that they ran.
 */
export const canRun = (what: string, missing: string | undefined): boolean => {
  if (missing === undefined) return true
  if (process.env["CI"] === "true") throw new Error(`CI has to run ${what}, but ${missing}`)
  console.log(`Not run here: ${what}, because ${missing}`)
  return false
}
