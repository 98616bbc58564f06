import { Converter } from "typedoc"

/** Names each module of the reference as a program imports it: `@trigate/upstream/limits/RateLimiter`. */
export const load = (app) => {
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (_context, reflection) => {
    reflection.name = reflection.name.replace(/^([a-z0-9]+)\/src\//u, "@trigate/$1/")
  })
}
