/** A store whose answers come late. */
import * as Effect from "effect/Effect"
import * as Net from "node:net"

/** A proxy that lets each answer of a server come late by a random time, in order; gives its port. `longest` is in milliseconds. */
export const lateProxy = (url: string, longest: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly server: Net.Server; readonly sockets: Set<Net.Socket>; readonly port: number }>(
        (resume) => {
          const sockets = new Set<Net.Socket>()
          const server = Net.createServer((client) => {
            const behind = Net.connect(Number(new URL(url).port), "127.0.0.1")
            let due = 0
            let seed = sockets.size + 1
            const random = () => (seed = seed * 48_271 % 2_147_483_647) / 2_147_483_647
            client.on("data", (chunk) => behind.write(chunk))
            behind.on("data", (chunk) => {
              due = Math.max(due, performance.now() + random() * longest)
              setTimeout(() => client.writable && client.write(chunk), due - performance.now())
            })
            for (const socket of [client, behind]) {
              sockets.add(socket)
              socket.on("error", () => {})
              socket.on("close", () => {
                client.destroy()
                behind.destroy()
              })
            }
          }).listen(0, "127.0.0.1", () => {
            const address = server.address()
            const port = address !== null && typeof address === "object" ? address.port : 0
            resume(Effect.succeed({ server, sockets, port }))
          })
        }
      ),
      ({ server, sockets }) =>
        Effect.sync(() => {
          for (const socket of sockets) socket.destroy()
          server.close()
        })
    ),
    ({ port }) => port
  )
