// What the scheduler does, as it does it.
import { h, Fragment } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { RecordList, RecordOf } from './api'
import { at, decided, isStill, lost, mostDecided } from './data'
import { Records, Shown, useAnswer } from './parts'
import { go } from './route'
import { count } from './text'

// The results of attempts, and the types of the other records.
const results = ['Scheduled', 'Unschedulable', 'Preempting', 'Waiting', 'Gated', 'Error', 'Bound', 'Evicted', 'Moved']

export function Decisions({ query }: { query: URLSearchParams }) {
  const q = query.get('q') ?? '', result = query.get('result') ?? ''
  const set = (name: string, value: string) => {
    const next = new URLSearchParams(query)
    if (value) next.set(name, value)
    else next.delete(name)
    const text = next.toString()
    go('#/decisions' + (text && '?' + text), true)
  }
  return <>
    <form class="bar" onSubmit={e => { e.preventDefault() }}>
      <label>Only pods or nodes with <input value={q} placeholder="part of a name" autocomplete="off" spellcheck={false} onInput={e => { set('q', e.currentTarget.value) }} /></label>
      <label>Result <select value={result} onChange={e => { set('result', e.currentTarget.value) }}>
        <option value="">All</option>{results.map(r => <option value={r}>{r}</option>)}
      </select></label>
    </form>
    <Stream key={JSON.stringify([q, result, at.value])} q={q.trim().toLowerCase()} result={result} />
  </>
}

// mostBefore bounds the records that are asked for at the start; where a name is looked for, they are more.
const mostBefore = 200, mostSearched = 2000

const same = (r: RecordOf): string => JSON.stringify([r.time, r.type, r.pod, r.to, r.result])

function Stream({ q, result }: { q: string; result: string }) {
  const matches = (r: RecordOf): boolean => (result === '' || r.type === result || r.result === result) && (q === '' || [r.pod, r.node, r.nominatedNode, r.for].some(name => name?.toLowerCase().includes(q)))
  const [paused, pause] = useState<RecordOf[] | undefined>(undefined)
  const before = useAnswer<RecordList>('records', { limit: String(q === '' ? mostBefore : mostSearched), reason: result })
  // came are the records of the stream that match: it keeps them while others push them out of those decided last.
  const came = useRef({ seen: 0, list: [] as RecordOf[] })
  const fresh = decided.value.filter(d => d.key > came.current.seen)
  if (fresh.length > 0) came.current = { seen: fresh[0].key, list: [...fresh.map(d => d.record).filter(matches), ...came.current.list].slice(0, mostDecided) }
  const list = came.current.list, known = new Set(list.map(same))
  const shown = paused ?? [...list, ...[...before.data?.records ?? []].reverse().filter(r => matches(r) && !known.has(same(r)))].slice(0, mostDecided)
  return <>
    <p>{isStill() ? 'What the simulation did, the newest first.' : 'What the scheduler does, the newest first.'} {!isStill() && <button type="button" onClick={() => { pause(paused ? undefined : shown) }}>{paused ? 'Resume' : 'Pause'}</button>}</p>
    {lost.value > 0 && <p class="note">{count(lost.value, 'record was', 'records were')} lost: they came faster than they could be sent.</p>}
    <div role="log" aria-label="Decisions" aria-live="off" tabIndex={0} class="log">
      {shown.length > 0 ? <Records list={shown} pods /> : <Shown answer={before} what="the records">{answer => <p>{q === '' && result === '' ? 'Nothing has happened yet.' : `None of the newest ${count(answer.records.length, 'record')} matches. One that matches comes here once it happens.`}</p>}</Shown>}
    </div>
  </>
}
