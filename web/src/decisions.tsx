// What the scheduler does, as it does it.
import { h, Fragment } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { RecordList, RecordOf } from './api'
import { at, decided, isStill, lost, mostDecided, resumed } from './data'
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

// Dated is a record with its time as text that compares as the times do, and what tells it from others.
interface Dated { time: string; id: string; record: RecordOf }
const dated = (r: RecordOf): Dated => ({ time: r.time.replace(/(?:\.(\d+))?Z$/, (_, part?: string) => '.' + (part ?? '').padEnd(9, '0')), id: JSON.stringify([r.time, r.type, r.pod, r.to, r.result]), record: r })

// merged returns the records of both lists, each once, the newest first. Of those of one time the newer list's come
// first.
function merged(newer: RecordOf[], list: Dated[]): Dated[] {
  const known = new Set(list.map(d => d.id))
  const all = [...newer.map(dated).filter(d => !known.has(d.id)), ...list]
  return all.sort((a, b) => a.time < b.time ? 1 : a.time > b.time ? -1 : 0).slice(0, mostDecided)
}

function Stream({ q, result }: { q: string; result: string }) {
  const matches = (r: RecordOf): boolean => r.type === 'Process' || (result === '' || r.type === result || r.result === result) && (q === '' || [r.pod, r.node, r.nominatedNode, r.for].some(name => name?.toLowerCase().includes(q)))
  const [paused, pause] = useState<RecordOf[] | undefined>(undefined)
  const before = useAnswer<RecordList>('records', { limit: String(q === '' ? mostBefore : mostSearched), reason: result })
  // A stream that broke may go on later, or with another process: what it left out is asked for.
  const since = useRef(resumed.value)
  useEffect(() => { if (resumed.value !== since.current) { since.current = resumed.value; before.again() } }, [resumed.value])
  // came are the records that match: it keeps them while others push them out of those decided last.
  const came = useRef({ seen: 0, answer: undefined as RecordList | undefined, list: [] as Dated[] })
  if (before.data && before.data !== came.current.answer) came.current = { ...came.current, answer: before.data, list: merged([...before.data.records].reverse().filter(matches), came.current.list) }
  const fresh = decided.value.filter(d => d.key > came.current.seen)
  if (fresh.length > 0) came.current = { ...came.current, seen: fresh[0].key, list: merged(fresh.map(d => d.record).filter(matches), came.current.list) }
  const shown = paused ?? came.current.list.map(d => d.record)
  return <>
    <p>{isStill() ? 'What the simulation did, the newest first.' : 'What the scheduler does, the newest first.'} {!isStill() && <button type="button" onClick={() => { pause(paused ? undefined : shown) }}>{paused ? 'Resume' : 'Pause'}</button>}</p>
    {lost.value > 0 && <p class="note">{count(lost.value, 'record was', 'records were')} lost: they came faster than they could be sent.</p>}
    <div role="log" aria-label="Decisions" aria-live="off" tabIndex={0} class="log">
      {shown.length > 0 ? <Records list={shown} pods /> : <Shown answer={before} what="the records">{answer => <p>{q === '' && result === '' ? 'Nothing has happened yet.' : `None of the newest ${count(answer.records.length, 'record')} matches. One that matches comes here once it happens.`}</p>}</Shown>}
    </div>
  </>
}
