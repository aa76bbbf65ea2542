// What several views have.
import { h, Fragment, type ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { signal } from '@preact/signals'
import type { Problem, RecordOf } from './api'
import { ask, at, isStill, Refused, timeless } from './data'
import { clock, recordText } from './text'

// busy says how many answers the view at hand waits for.
export const busy = signal(0)

export interface Answer<T> { data?: T; problem?: Problem; again: () => void }

// useAnswer asks the daemon, and asks again so often; 0: never.
export function useAnswer<T>(what: string, query: Record<string, string>, seconds = 0): Answer<T> {
  const [state, set] = useState<{ of: string; data?: T; problem?: Problem }>({ of: '' })
  const [turn, next] = useState(0)
  const of = what + '?' + new URLSearchParams({ ...query, at: timeless.includes(what) ? '' : at.value }).toString()
  useEffect(() => {
    const stop = new AbortController()
    let over = false, timer = 0
    const done = () => { if (!over) { over = true; busy.value-- } }
    busy.value++
    ask<T>(what, query, stop.signal).then(data => { set({ of, data }) }, (error: unknown) => {
      if (!stop.signal.aborted) set({ of, problem: (error as Refused).problem ?? { code: 0, reason: '', message: String(error) } })
    }).finally(() => {
      done()
      if (seconds > 0 && !stop.signal.aborted) timer = setTimeout(() => { next(n => n + 1) }, seconds * 1000)
    })
    return () => { stop.abort(); clearTimeout(timer); done() }
  }, [of, turn, seconds])
  const again = () => { next(n => n + 1) }
  return state.of === of ? { ...state, again } : { again }
}

// useTick renders anew each second.
export function useTick() {
  const [, tick] = useState(0)
  useEffect(() => {
    if (isStill()) return
    const timer = setInterval(() => { tick(n => n + 1) }, 1000)
    return () => { clearInterval(timer) }
  }, [])
}

// useLate is true 300 ms after the first use.
function useLate(): boolean {
  const [late, set] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => { set(true) }, 300)
    return () => { clearTimeout(timer) }
  }, [])
  return late
}

export function Loading({ what }: { what: string }) {
  return useLate() ? <p class="quiet">Loading {what} …</p> : <></>
}

// advice says what to do about a problem with what was asked for.
function advice(p: Problem, what: string): string {
  switch (p.code) {
    case 0: return ''
    case 401: return ''
    case 403: return 'Ask whoever runs the cluster for the right, then reload this page.'
    case 404: return p.reason === 'NotExported' || !/\b(pod|node|group) /.test(what) ? '' : 'It may be gone since, or be named otherwise. Find it with the box above.'
    case 501: return 'What the scheduler recorded of the pod is shown instead.'
    case 502: return 'The page asks again by itself once the scheduler answers.'
    case 503: return p.leader ? `The page follows the leader, ${p.leader}, by itself.` : 'The page goes on by itself once a scheduler leads.'
  }
  return ''
}

const retryAfter = 5

// Trouble shows why there is no answer, and asks again where that may help.
export function Trouble({ problem, what = '', again }: { problem: Problem; what?: string; again?: () => void }) {
  const retries = again !== undefined && [429, 502, 503, 504].includes(problem.code)
  const [left, set] = useState(retryAfter)
  useEffect(() => {
    if (!retries) return
    set(retryAfter)
    const timer = setInterval(() => { set(n => n - 1) }, 1000)
    return () => { clearInterval(timer) }
  }, [problem])
  useEffect(() => { if (retries && left <= 0) again() }, [left])
  return <div role="alert" class="trouble">
    <p>{problem.message}</p>
    {advice(problem, what) && <p>{advice(problem, what)}</p>}
    {again && [400, 500].includes(problem.code) && <button type="button" onClick={again}>Ask again</button>}
    {retries && <p>Asking again in {Math.max(0, left)} s.</p>}
  </div>
}

// Shown shows an answer, or why there is none.
export function Shown<T>({ answer, what, children }: { answer: Answer<T>; what: string; children: (data: T) => ComponentChildren }) {
  if (answer.problem) return <Trouble problem={answer.problem} what={what} again={answer.again} />
  if (answer.data === undefined) return <Loading key={what} what={what} />
  return <>{children(answer.data)}</>
}

export const nodeLink = (name: string) => <a href={'#/node/' + encodeURIComponent(name)}><bdi>{name}</bdi></a>
export const podLink = (pod: string) => {
  const [namespace, name] = pod.split('/')
  return name === undefined ? <bdi>{pod}</bdi> : <a href={`#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`}><bdi>{pod}</bdi></a>
}

// Table is a table with a name. A cell is a number where its column is to the right.
export function Table({ name, columns, rows }: { name: string; columns: string[]; rows: ComponentChildren[][] }) {
  return <div class="scroll" tabIndex={0} role="group" aria-label={name + ', scrollable'}>
    <table aria-label={name}>
      <thead><tr>{columns.map(c => <th scope="col">{c}</th>)}</tr></thead>
      <tbody>{rows.map(row => <tr>{row.map(cell => <td class={typeof cell === 'number' ? 'number' : ''}>{typeof cell === 'number' ? cell.toLocaleString('en') : cell}</td>)}</tr>)}</tbody>
    </table>
  </div>
}

export function Region({ name, children }: { name: string; children: ComponentChildren }) {
  const id = 'region-' + name.replace(/ /g, '-')
  return <section aria-labelledby={id}><h2 id={id}>{name}</h2>{children}</section>
}

export function Records({ list, pods }: { list: RecordOf[]; pods: boolean }) {
  return <ol class="records">{list.map(r => <li><time dateTime={r.time}>{clock(r.time)}</time> {pods && podLink(r.pod)} {r.type === 'Evicted' ? <>evicted from {nodeLink(r.node ?? '')} for {podLink(r.for ?? '')}</> : <span class="words">{recordText(r)}</span>}</li>)}</ol>
}

// CopyButton copies a text.
export function CopyButton({ name, text }: { name: string; text: string }) {
  const [done, set] = useState(false)
  const copy = () => { void navigator.clipboard.writeText(text).then(() => { set(true); setTimeout(() => { set(false) }, 2000) }) }
  return <><button type="button" onClick={copy}>{name}</button><span role="status" class="quiet">{done ? ' copied' : ''}</span></>
}
