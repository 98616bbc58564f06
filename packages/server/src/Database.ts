/** The database of `TRIGATE_DATABASE_URL`: Postgres or a SQLite file. Its driver is loaded only where one is configured. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { SqlClient } from "effect/sql/SqlClient"

/** Where the database is. */
export type Place =
  | { readonly kind: "Postgres"; readonly url: Redacted.Redacted }
  | { readonly kind: "SQLite"; readonly file: string }

/** The place that a setting names. A SQLite file is a path, `sqlite:path` or `file:path`. */
export const placeOf = (url: Redacted.Redacted): Place => {
  const text = Redacted.value(url)
  if (/^postgres(?:ql)?:/u.test(text)) return { kind: "Postgres", url }
  return { kind: "SQLite", file: text.replace(/^(?:sqlite|file):(?:\/\/(?=\/))?/u, "") }
}

/** The client. It connects at its first use, so that a gateway starts without its database. */
export const layer = (place: Place, mode: "create" | "existing" = "create"): Layer.Layer<SqlClient> =>
  Layer.unwrap(Effect.promise(() =>
    place.kind === "SQLite"
      ? import("./SqliteClient.ts").then((client) => client.layer({ file: place.file, mode }))
      : import("@effect/sql-pg/PgClient").then((client) =>
        Layer.orDie(client.layer({ url: place.url, applicationName: "trigate", connectTimeout: "2 seconds" }))
      )
  ))
