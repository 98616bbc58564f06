/**
 * The streams: callers' WebSockets, the venue subscriptions that these WebSockets share, and the frames of each
 * subscription.
 */
import * as Live from "./Live.ts"
import * as Table from "./Table.tsx"

/** The gauges that the panel shows: the metric of each gauge, by its title. */
const totals = {
  "WebSockets of callers": "trigate_stream_sockets",
  "Connections to the venue": "trigate_stream_connections",
  "Subscriptions at the venue": "trigate_stream_subscriptions",
  "Users subscribed at the venue": "trigate_stream_users"
}

/**
 * The counters of stream problems since the gateway's start: a title, the metric, and a label of the metric. The panel
 * has one row for each value of the label.
 */
const troubles = [
  { name: "WebSocket ended", metric: "trigate_stream_closed_total", label: "reason" },
  { name: "Connection or subscription lost", metric: "trigate_stream_reconnects_total", label: "cause" },
  { name: "Gap in a stream that could not be refilled", metric: "trigate_stream_gaps_total", label: "channel" },
  { name: "Rows refilled after a loss", metric: "trigate_stream_refilled_total", label: "channel" }
]

/** Returns the subscriptions for which the venue has sent frames, with their frames per second, busiest first. */
const channels = () =>
  Live.of("trigate_stream_age_seconds").map(({ labels: { channel = "" }, value }) => ({
    channel,
    age: value,
    received: Live.perSecond(Live.growth("trigate_stream_frames_total", { channel })),
    delivered: Live.perSecond(Live.growth("trigate_stream_deliveries_total", { channel }))
  })).toSorted((one, other) => other.delivered - one.delivered)

/** The console's panel of streams. */
export const Streams = () => {
  if (Live.snapshots.value.length === 0) return <p class="muted">Reading …</p>
  return (
    <>
      <Table.Table
        title="Streams now"
        columns={["Of this gateway", "Number"]}
        rows={Object.entries(totals).map(([name, metric]) => ({
          key: name,
          cells: [name, Table.count(Live.sum(metric))]
        }))}
        empty="None."
      />
      <Table.Table
        title="Subscriptions in the last minute"
        columns={["Subscription", "Frames of the venue", "Frames to callers", "Longest silence"]}
        rows={channels().map(({ age, channel, delivered, received }) => ({
          key: channel,
          cells: [channel, `${received.toFixed(1)} /s`, `${delivered.toFixed(1)} /s`, Table.duration(age)]
        }))}
        empty="No caller has subscribed yet."
      />
      <Table.Table
        title="Since the start"
        columns={["Event", "Reason or subscription", "Number"]}
        text={["Reason or subscription"]}
        rows={troubles.flatMap(({ label, metric, name }) =>
          Live.of(metric).map(({ labels, value }) => ({
            key: `${name} ${labels[label]}`,
            cells: [name, labels[label], Table.count(value)]
          }))
        )}
        empty="No connection was lost, and no stream has a gap."
      />
    </>
  )
}
