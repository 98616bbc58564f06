/** Makes the folder that the test files of a run share, for example for a bundle of the program, and removes it after the run. */
import { makeRunFolder, removeRunFolder } from "@trigate/testing/OncePerRun"

export const setup = (): () => void => {
  const folder = makeRunFolder()
  return () => removeRunFolder(folder)
}
