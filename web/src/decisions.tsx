// What the scheduler does, as it does it.
import { h, Fragment } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { RecordList } from './api'
import { ask, decided, isStill, keep, lost } from './data'
import { Records } from './parts'

export function Decisions() {
  const [paused, pause] = useState<typeof decided.value | undefined>(undefined)
  useEffect(() => {
    if (decided.peek().length > 0) return
    void ask<RecordList>('records', { limit: '200' }).then(list => { if (decided.peek().length === 0) for (const r of list.records) keep(r) }, () => { /* the stream goes on */ })
  }, [])
  const shown = paused ?? decided.value
  return <>
    <p>{isStill() ? 'What the simulation did, the newest first.' : 'What the scheduler does, the newest first.'} {!isStill() && <button type="button" onClick={() => { pause(paused ? undefined : decided.value) }}>{paused ? 'Resume' : 'Pause'}</button>}</p>
    {lost.value > 0 && <p class="note">{lost.value} records were lost: they came faster than they could be sent.</p>}
    <div role="log" aria-label="Decisions" aria-live="off" tabIndex={0} class="log">
      {shown.length === 0 ? <p>Nothing has happened yet.</p> : <Records list={shown.map(d => d.record)} pods />}
    </div>
  </>
}
