/** A folder for what the test files of one run share, such as a bundle of the program: made before the first, removed after the last. */
import { makeRunFolder, removeRunFolder } from "@trigate/testing/OncePerRun"

export const setup = (): () => void => {
  const folder = makeRunFolder()
  return () => removeRunFolder(folder)
}
