/** A small line chart. */

const width = 240
const height = 48

/** Draws numbers as a filled line on a scale from 0 to `top`, oldest number first. `label` is the text alternative. */
export const Spark = (
  { label, top, values }: { readonly label: string; readonly top: number; readonly values: ReadonlyArray<number> }
) => {
  const scale = top <= 0 ? 1 : top
  const step = width / Math.max(1, values.length - 1)
  const points = values.map((value, at) =>
    `${(at * step).toFixed(1)},${(height - (Math.min(value, scale) / scale) * height).toFixed(1)}`
  )
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {values.length < 2 ? null : (
        <>
          <polygon points={`0,${height} ${points.join(" ")} ${width},${height}`} />
          <polyline points={points.join(" ")} />
        </>
      )}
    </svg>
  )
}
