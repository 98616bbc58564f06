/** A route with nothing behind it: what an answer costs that is ready. */
import { fastify } from "fastify"

const text = process.argv[2] ?? ""

const app = fastify({ logger: false, keepAliveTimeout: 75_000 })
app.post("/info", (_request, reply) => reply.type("application/json").send(text))
console.log(`listens on ${await app.listen({ host: "127.0.0.1", port: 0 })}`)
