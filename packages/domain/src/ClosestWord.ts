/** Suggestions for misspelled names in error messages ("did you mean"). */

/** Returns the edit distance of two texts: the minimum number of insertions, deletions and replacements. */
const distance = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 0; i < one.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < other.length; j++) {
      const replaced = (row[j] ?? 0) + (one[i] === other[j] ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}

/** Maximum length of a name in characters; no suggestion is made for longer text. */
const longest = 64

/**
 * Returns the known word with the smallest edit distance to `word`; `undefined` if that distance exceeds a third of the
 * length of `word`, or if `word` is longer than 64 characters.
 *
 * Ignores letter case.
 */
export const closestWord = (word: string, known: Iterable<string>): string | undefined => {
  if (word.length > longest) return undefined
  const upper = word.toUpperCase()
  const [first] = [...known]
    .map((candidate) => ({ candidate, far: distance(upper, candidate.toUpperCase()) }))
    .toSorted((a, b) => a.far - b.far)
  return first !== undefined && first.far <= word.length / 3 ? first.candidate : undefined
}
