/** Makes the folder that the test files of a run share, for example for a bundle of the program, and removes it after the run. */
import { makeRunFolder, removeRunFolder } from "@trigate/testing/OncePerRun"
import type { TestProject } from "vitest/node"

export const setup = ({ config }: TestProject): () => void => {
  console.log(
    `seed ${config.env["TEST_SEED"]}: TRIGATE_TEST_SEED repeats the samples and cases of this run elsewhere`
  )
  const folder = makeRunFolder()
  return () => removeRunFolder(folder)
}
