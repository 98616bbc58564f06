/** Decimal strings in the venue's canonical form: plain, without redundant zeros. */

const plain = /^(?<sign>-?)(?<whole>[0-9]*)(?:\.(?<fraction>[0-9]*))?$/

const scientific = /^(?<sign>-?)(?<whole>[0-9]+)(?:\.(?<fraction>[0-9]+))?[eE](?<exponent>[+-]?[0-9]{1,3})$/

const spelled = (sign: string, whole: string, fraction: string): string => {
  const units = whole.replace(/^0+(?=.)/, "") || "0"
  const rest = fraction.replace(/0+$/, "")
  const digits = rest === "" ? units : `${units}.${rest}`
  return digits === "0" ? digits : `${sign}${digits}`
}

/**
 * Returns a decimal in the venue's canonical form: `1100.50` is `1100.5`, `.5` is `0.5`, `-0` is `0`, `1e-7` is
 * `0.0000001`.
 *
 * Returns `undefined` if the text is not a decimal number.
 */
export const canonical = (text: string): string | undefined => {
  const { fraction = "", sign = "", whole = "" } = plain.exec(text)?.groups ?? {}
  if (whole !== "" || fraction !== "") return spelled(sign, whole, fraction)
  const power = scientific.exec(text)?.groups
  if (power === undefined) return undefined
  const digits = `${power["whole"]}${power["fraction"] ?? ""}`
  const point = (power["whole"] ?? "").length + Number(power["exponent"])
  return point <= 0
    ? spelled(power["sign"] ?? "", "0", `${"0".repeat(-point)}${digits}`)
    : spelled(power["sign"] ?? "", digits.slice(0, point).padEnd(point, "0"), digits.slice(point))
}

/** Truncates a canonical decimal to at most `places` decimal places. */
export const atMostPlaces = (decimal: string, places: number): string => {
  const [whole = "0", fraction = ""] = decimal.split(".")
  return spelled("", whole, fraction.slice(0, Math.max(0, places)))
}

/** Truncates a canonical decimal to at most `digits` significant digits. The integer part is never shortened. */
export const atMostDigits = (decimal: string, digits: number): string => {
  const [whole = "0", fraction = ""] = decimal.split(".")
  const places = whole === "0" ? digits + (/^0*/.exec(fraction)?.[0].length ?? 0) : digits - whole.length
  return atMostPlaces(decimal, places)
}
