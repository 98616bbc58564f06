/** Metrics of the candle archive and its recorder. */
import { counter, gauge } from "@trigate/domain/DeclaredMetric"

/** The metrics, by member name. */
export const metrics = {
  archiveBars: counter("trigate_archive_bars_total", "Bars that the recorder added to the candle archive", [
    "interval"
  ]),
  archiveCorrections: counter(
    "trigate_archive_corrections_total",
    "Closed bars that the venue changed afterwards; the archive keeps both versions",
    ["interval"]
  ),
  archiveDifferences: counter(
    "trigate_archive_differences_total",
    "Bars built from smaller bars and then replaced, because the venue's own bars differed",
    ["interval"]
  ),
  recording: gauge("trigate_archive_recording", "1 while this process records candles, otherwise 0"),
  archiveBehind: gauge(
    "trigate_archive_behind_seconds",
    "Seconds since the last recorded bar closed, for the coin that is furthest behind"
  ),
  archiveDegraded: gauge("trigate_archive_degraded", "1 while the candle archive cannot be used, otherwise 0")
} as const
