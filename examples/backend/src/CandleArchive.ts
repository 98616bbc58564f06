/** Streams the bars of a window to a file of JSON lines. */
import type { CandleWindowRequest } from "@trigate/domain/candles/Candle"
import { Info } from "@trigate/trading/Info"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Ndjson from "effect/encoding/Ndjson"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

/** The file was not written, for example because the disk is full. It declares a group, like the errors of the chains. */
export class ArchiveUnwritable extends Schema.TaggedError<ArchiveUnwritable>()("ArchiveUnwritable", {
  detail: Schema.String
}) {
  get group() {
    return "fix-setup" as const
  }
  override get message() {
    return this.detail
  }
}

// the venue would answer with 5000 bars, and this program would hold them all
const barsPerStretch = 1000

const unwritable = ({ message }: Error) => Effect.fail(new ArchiveUnwritable({ detail: message }))

const make = Effect.fnUntraced(function*(folder: string) {
  const info = yield* Info
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path

  /** The next stretch is asked for when the file has taken the one before, so that memory holds one of them. */
  const write = Effect.fn("CandleArchive.write")(
    function*(window: CandleWindowRequest) {
      const { coin, interval, startTime } = window
      const written = yield* Ref.make({ bars: 0, isWhole: true })
      const file = path.join(folder, `${encodeURIComponent(coin)}-${interval}-${startTime}.ndjson`)
      yield* files.makeDirectory(folder, { recursive: true })
      // whoever reads the folder never sees half a file, and a failure leaves none
      const draft = yield* files.makeTempFileScoped({ directory: folder, prefix: "draft-" })
      yield* info.candles(window, { barsPerStretch }).pipe(
        // the bar that is still forming will change
        Stream.map((stretch) => ({ ...stretch, closed: stretch.candles.filter((bar) => bar !== stretch.forming) })),
        Stream.tap(({ closed, coverage }) =>
          Ref.update(written, ({ bars, isWhole }) => ({
            bars: bars + closed.length,
            isWhole: isWhole && coverage === "complete"
          }))
        ),
        Stream.flatMap(({ closed }) => Stream.fromIterable(closed)),
        Stream.pipeThroughChannel(Ndjson.encode()),
        Stream.run(files.sink(draft))
      )
      yield* files.rename(draft, file)
      const { bars, isWhole } = yield* Ref.get(written)
      yield* Effect.annotateCurrentSpan({ coin, interval, bars })
      return { file, bars, isWhole }
    },
    Effect.scoped,
    Effect.catchTags({ PlatformError: unwritable, NdjsonError: unwritable })
  )

  return { write }
})

export class CandleArchive extends Context.Service<CandleArchive, Effect.Success<ReturnType<typeof make>>>()(
  "backend/CandleArchive"
) {
  static readonly layer = (folder: string) => Layer.effect(CandleArchive, make(folder))
}
