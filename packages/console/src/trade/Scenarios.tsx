/** The bar of scenarios, and the progress of the one that runs. */
import * as Table from "../Table.tsx"
import { type Bar, isRunning, play, progress, stories } from "./Stories.ts"

const documents = "https://github.com/trigate/trigate/blob/main/docs/"

const BarRow = ({ bar: { most, name, value } }: { readonly bar: Bar }) => (
  <div>
    <dt>{name}</dt>
    <dd>
      <meter min={0} max={most} value={value} aria-label={name} /> <strong>{Table.count(value)}</strong>
    </dd>
  </div>
)

const Progress = () => {
  const now = progress.value
  if (now === undefined) return null
  const { bars, failure, figure, name, steps } = now
  const guide = stories[name]?.guide
  return (
    <div class="story" role="region" aria-label={name} aria-live="polite">
      <div>
        <ol>{steps.map((step) => <li key={step}>{step}</li>)}</ol>
        {bars.length === 0 ? null : <dl class="bars">{bars.map((bar, at) => <BarRow key={at} bar={bar} />)}</dl>}
      </div>
      <div class="end">
        {failure !== undefined
          ? <p class="bad" role="alert">{failure}</p>
          : figure === undefined
          ? <p class="muted">Running …</p>
          : (
            <>
              <p class="number">{figure.text}</p>
              <p>{figure.meaning}</p>
            </>
          )}
        {guide === undefined ? null : (
          <p class="muted">
            Guide: <a href={documents + guide.file} rel="noreferrer">{guide.title}</a>
          </p>
        )}
      </div>
      <button
        type="button"
        class="plain"
        aria-label="Close the scenario"
        disabled={isRunning.value}
        onClick={() => (progress.value = undefined)}
      >
        ✕
      </button>
    </div>
  )
}

/** The card with a button for each scenario. */
export const Scenarios = () => (
  <section class="card stories" aria-label="Scenarios">
    <div class="row">
      <h2>Scenarios</h2>
      {Object.keys(stories).map((name) => (
        <button
          key={name}
          type="button"
          class="plain"
          aria-pressed={progress.value?.name === name}
          disabled={isRunning.value}
          onClick={() => void play(name)}
        >
          {name}
        </button>
      ))}
    </div>
    <Progress />
  </section>
)
