/** The ids of the JSON-RPC calls that go out: each exchange has its own, so that an answer to another one is told. */

/** Numbers from 1, over and over. */
export const make = (): () => number => {
  let lastId = 0
  return () => {
    lastId = lastId % Number.MAX_SAFE_INTEGER + 1
    return lastId
  }
}
