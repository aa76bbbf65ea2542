// What the scheduler does, as it does it.
import { h, Fragment } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { RecordList } from './api'
import { decided, isStill, keep, lost } from './data'
import { Records, Shown, useAnswer } from './parts'
import { count } from './text'

export function Decisions() {
  const [paused, pause] = useState<typeof decided.value | undefined>(undefined)
  const before = useAnswer<RecordList>('records', { limit: '200' })
  useEffect(() => { if (before.data && decided.peek().length === 0) for (const r of before.data.records) keep(r) }, [before.data])
  const shown = paused ?? decided.value
  return <>
    <p>{isStill() ? 'What the simulation did, the newest first.' : 'What the scheduler does, the newest first.'} {!isStill() && <button type="button" onClick={() => { pause(paused ? undefined : decided.value) }}>{paused ? 'Resume' : 'Pause'}</button>}</p>
    {lost.value > 0 && <p class="note">{count(lost.value, 'record was', 'records were')} lost: they came faster than they could be sent.</p>}
    <div role="log" aria-label="Decisions" aria-live="off" tabIndex={0} class="log">
      {shown.length > 0 ? <Records list={shown.map(d => d.record)} pods /> : <Shown answer={before} what="the records">{list => list.records.length === 0 ? <p>Nothing has happened yet.</p> : <></>}</Shown>}
    </div>
  </>
}
