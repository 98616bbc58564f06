/** The settings in effect, and the source of each. */
import type { SettingValue } from "@trigate/api/unstable/AdminApi"
import * as Admin from "@trigate/client/Admin"
import { useEffect, useState } from "preact/hooks"
import * as Gateway from "./Gateway.ts"
import { plain, Table } from "./Table.tsx"

type Found = Gateway.CallResult<ReadonlyArray<SettingValue>>

/** The console's panel of settings. */
export const Settings = () => {
  const [found, setFound] = useState<Found | undefined>(undefined)
  useEffect(() => void Gateway.run(Admin.settings()).then(setFound), [])
  if (found === undefined) return <p class="muted">Reading …</p>
  if ("failure" in found) return <p class="card bad" role="alert">{found.failure}</p>
  if (found.value.length === 0) {
    return <p class="muted">This gateway is part of another program, which has its own settings.</p>
  }
  const isAll = Gateway.place.value.params["all"] === "yes"
  const shown = found.value.filter(({ source }) => isAll || source !== undefined)
  const groups = [...new Set(shown.map(({ group }) => group))]
  return (
    <>
      <p class="card">
        <label class="check">
          <input type="checkbox" checked={isAll} onChange={() => Gateway.go("settings", isAll ? {} : { all: "yes" })} />
          {" "}
          Also show the {found.value.length - found.value.filter(({ source }) => source !== undefined).length}{" "}
          settings that have their default value
        </label>
      </p>
      {shown.length === 0 ? <p class="muted">Every setting has its default value.</p> : null}
      {groups.map((group) => (
        <Table
          key={group}
          title={group}
          text
          columns={["Setting", "Value", "Source", "Meaning"]}
          empty=""
          rows={shown.filter((setting) => setting.group === group).map((setting) => ({
            key: setting.name,
            cells: [
              <code key="name">{setting.name}</code>,
              setting.source === undefined
                ? <div key="value" class="long muted">{plain(setting.default)}</div>
                : setting.isSecret
                ? <span key="value" class="muted">set, hidden</span>
                : <code key="value">{setting.value}</code>,
              setting.source ?? "default",
              <div key="meaning" class="long">
                {plain(setting.meaning)}
                {setting.needsRestart ? " (a change needs a restart)" : ""}
              </div>
            ]
          }))}
        />
      ))}
    </>
  )
}
