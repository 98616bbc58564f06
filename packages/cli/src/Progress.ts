/** One line on standard error that shows how far something is: on a terminal only, and gone when it is done. */
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"

const eraseLine = "\r\u001B[2K"

const width = 24

/** How much of something is there, as a bar. */
export const bar = (done: number, total: number): string => {
  const filled = total === 0 ? width : Math.round(width * Math.min(1, done / total))
  return `[${"#".repeat(filled)}${"-".repeat(width - filled)}] ${done}/${total}`
}

/** Shows a line in place of the one before. */
export type Show = (line: string) => Effect.Effect<void>

/** Runs something that shows how far it is; where standard error is no terminal nothing is shown. */
export const during = Effect.fnUntraced(function*<A, E, R>(work: (show: Show) => Effect.Effect<A, E, R>) {
  const stdio = yield* Stdio.Stdio
  if (!(yield* stdio.stderrIsTerminal)) return yield* work(() => Effect.void)
  // a line that cannot be shown is no reason to stop the work
  const write = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stderr({ endOnDone: false })))
  return yield* Effect.ensuring(work((line) => write(`${eraseLine}${line}`)), write(eraseLine))
})
