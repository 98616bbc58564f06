/**
 * Formats and parses files of bars as lines of text: NDJSON in the venue's form, and CSV with a header line.
 *
 * Numbers keep the venue's formatting. The bars of a file have one coin and interval, and are in ascending order of
 * time.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../encoding/Json.ts"
import { decodeFaults } from "../operations/Operation.ts"
import { Candle } from "./Candle.ts"
import type { CandleInterval } from "./Candle.ts"

/** The formats of a file of bars. */
export const CandleFormat = Schema.Literals(["ndjson", "csv", "parquet"]).annotate({ identifier: "CandleFormat" })
export type CandleFormat = typeof CandleFormat.Type

/** The formats of files of bars that are written as lines of text. */
export type TextFormat = Exclude<CandleFormat, "parquet">

/** The content type of each file format. */
export const contentTypes: { readonly [Format in CandleFormat]: string } = {
  ndjson: "application/x-ndjson",
  csv: "text/csv; charset=utf-8",
  parquet: "application/vnd.apache.parquet"
}

/** The columns of CSV and Parquet: times in milliseconds, volume in the base asset. */
export const columns = ["open_time", "close_time", "open", "high", "low", "close", "volume", "trades"] as const

/** The header line of CSV. */
export const csvHeadings: string = columns.join(",")

/** Formats a bar as a CSV line. */
export const csv = ({ T, c, h, l, n, o, t, v }: Candle): string => [t, T, o, h, l, c, v, n].join(",")

/** Formats a bar as an NDJSON line. */
export const ndjson = (bar: Candle): string => Json.stringify(bar)

const decode = Schema.decodeUnknownResult(Candle, { errors: "all" })

/** Decodes a bar. Fails with a description of the mistake. */
export const checked = (value: unknown): Result.Result<Candle, string> =>
  Result.mapError(
    decode(value),
    (error) =>
      decodeFaults(error).map(({ message, path }) => path.length === 0 ? message : `${path.join(".")}: ${message}`)
        .join(
          "; "
        )
  )

const whole = /^[0-9]{1,16}$/u

const parseCount = (cell: string | undefined): number | string | undefined =>
  cell !== undefined && whole.test(cell) ? Number(cell) : cell

/** Parses a CSV line. The line contains neither coin nor interval, so the caller passes both. */
export const readCsv = (coin: string, interval: CandleInterval, line: string): Result.Result<Candle, string> => {
  const cells = line.split(",").map((cell) => cell.trim())
  if (cells.length !== columns.length) return Result.fail(`${cells.length} columns instead of ${columns.length}`)
  const [t, T, o, h, l, c, v, n] = cells
  return checked({ t: parseCount(t), T: parseCount(T), s: coin, i: interval, o, c, h, l, v, n: parseCount(n) })
}

/** Parses an NDJSON line. */
export const readNdjson = (line: string): Result.Result<Candle, string> =>
  Result.match(Json.parse(line), { onFailure: () => Result.fail("not JSON"), onSuccess: checked })
