// What several views have.
import { h, Fragment, type ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { signal } from '@preact/signals'
import type { Problem, RecordOf } from './api'
import { ask, at, capabilities, connection, isStill, Refused, timeless } from './data'
import { clock, count, recordText } from './text'

// busy says how many answers the view at hand waits for.
export const busy = signal(0)

export interface Answer<T> { data?: T; problem?: Problem; again: () => void }

// passes reports whether a problem says nothing about what was asked for: what was answered before may hold still.
const passes = (p: Problem): boolean => [0, 429, 500, 502, 503, 504].includes(p.code)

// retried reports whether Trouble asks again by itself.
const retried = (p: Problem): boolean => [429, 502, 503, 504].includes(p.code)

// useAnswer asks the daemon, and asks again so often while the page is seen; 0: never. Beside a problem
// that passes, the data are those of the last answer.
export function useAnswer<T>(what: string, query: Record<string, string>, seconds = 0): Answer<T> {
  const [state, set] = useState<{ of: string; data?: T; problem?: Problem }>({ of: '' })
  const [turn, next] = useState(0)
  const of = what + '?' + new URLSearchParams({ ...query, at: timeless.includes(what) ? '' : at.value }).toString()
  useEffect(() => {
    const stop = new AbortController()
    let over = false, timer = 0
    const done = () => { if (!over) { over = true; busy.value-- } }
    busy.value++
    const more = () => {
      if (document.hidden) document.addEventListener('visibilitychange', more, { once: true, signal: stop.signal })
      else next(n => n + 1)
    }
    let later = seconds > 0
    ask<T>(what, query, stop.signal).then(data => { set({ of, data }) }, (error: unknown) => {
      if (stop.signal.aborted) return
      const problem = (error as Refused).problem ?? { code: 0, reason: '', message: String(error) }
      later &&= !retried(problem)
      set(was => ({ of, problem, data: was.of === of && passes(problem) ? was.data : undefined }))
    }).finally(() => {
      done()
      if (later && !stop.signal.aborted) timer = setTimeout(more, seconds * 1000)
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

// advice says what to do about a problem with what was asked for. goesOn: the page asks again.
function advice(p: Problem, what: string, goesOn: boolean): string {
  switch (p.code) {
    case 0: return ''
    case 401: return ''
    case 403: return 'Ask whoever runs the cluster for the right, then reload this page.'
    case 404: return p.reason === 'NotExported' || !/\b(pod|node|group) /.test(what) ? '' : 'It may be gone since, or be named otherwise. Find it with the box above.'
    case 501: return what.startsWith('pod ') ? 'What the scheduler recorded of the pod is shown instead.' : ''
    case 503: return goesOn ? 'The page goes on by itself once a scheduler leads that it reaches.' : ''
  }
  return ''
}

const retryAfter = 5

// Trouble shows why there is no answer, and asks again where that may help.
export function Trouble({ problem, what = '', again }: { problem: Problem; what?: string; again?: () => void }) {
  const retries = again !== undefined && retried(problem), advised = advice(problem, what, again !== undefined)
  const [left, set] = useState(retryAfter)
  useEffect(() => {
    if (!retries) return
    set(retryAfter)
    const timer = setInterval(() => { set(n => Math.max(0, n - 1)) }, 1000) // at 0 it has asked, and waits
    return () => { clearInterval(timer) }
  }, [problem])
  useEffect(() => { if (retries && left <= 0) again() }, [left])
  // Why nobody answers stands above each view, once.
  const said = connection.value.problem
  if (retries && said && said.reason === problem.reason && said.reason !== 'InternalError') return <p class="quiet">{left > 0 ? `Asking again in ${left} s.` : 'Asking again …'}</p>
  return <div role="alert" class="trouble">
    <p>{problem.message}</p>
    {advised && <p>{advised}</p>}
    {again && [400, 500].includes(problem.code) && <button type="button" onClick={again}>Ask again</button>}
    {retries && <p>{left > 0 ? `Asking again in ${left} s.` : 'Asking again …'}</p>}
  </div>
}

// Shown shows an answer, or why there is none. What was answered before stays in grey where there may be an
// answer later.
export function Shown<T>({ answer, what, children }: { answer: Answer<T>; what: string; children: (data: T) => ComponentChildren }) {
  const { problem, data, again } = answer
  return <>
    {problem && <Trouble problem={problem} what={what} again={again} />}
    {data !== undefined ? <div key="answer" class={problem ? 'old' : ''}>{children(data)}</div> : !problem && <Loading key={what} what={what} />}
  </>
}

interface PartOf<T> { name: string; path: string; what: string; seconds: number; children: (data: T) => ComponentChildren }

// Part is what a view asks for beside what it is about. Where that is refused, the heading says of what. A
// scheduler of another version may not know the question: then there is no such part.
export function Part<T>(p: PartOf<T>) {
  return capabilities.value?.paths?.includes(p.path) ?? true ? <Asked {...p} /> : <></>
}

function Asked<T>({ name, path, what, seconds, children }: PartOf<T>) {
  const answer = useAnswer<T>(path, {}, isStill() ? 0 : seconds)
  const shown = <Shown answer={answer} what={what}>{children}</Shown>
  return answer.problem && answer.data === undefined ? <Region name={name}>{shown}</Region> : shown
}

export const nodeLink = (name: string) => <a href={'#/node/' + encodeURIComponent(name)}><bdi>{name}</bdi></a>
export const podLink = (pod: string) => {
  const [namespace, name] = pod.split('/')
  return name === undefined ? <bdi>{pod}</bdi> : <a href={`#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`}><bdi>{pod}</bdi></a>
}

// mostRows bounds a list: a page with more elements is slow. A view has several lists.
export const mostRows = 100

// More says how many there are beyond those that are shown, and how to see them.
export const More = ({ n, of, hint = '' }: { n: number; of: string; hint?: string }) => n > 0 ? <p>And {count(n, 'more ' + of)}{hint}.</p> : <></>

// mostExpanded bounds how much of a list is shown at a time once its reader asks for more.
const mostExpanded = 1000

// Table is a table with a name, of at most so many things of a list until its reader asks for more, which come a
// thousand at a time. It says how many there are more, total being how many there are at all. A cell is a number where its column is to the right.
export function Table<T>({ name, columns, list, row, of, most = mostRows, total = list.length, hint }: {
  name: string; columns: string[]; list: T[]; row: (thing: T) => ComponentChildren[]; of: string; most?: number; total?: number; hint?: string
}) {
  const [from, show] = useState<number | undefined>(undefined) // undefined: the first ones alone
  const all = from !== undefined, begin = from !== undefined && from < list.length ? from : 0
  const shown = list.slice(begin, begin + (all ? mostExpanded : most)), end = begin + shown.length
  const left = Math.min(mostExpanded, list.length - end)
  return <>
    <div class="scroll" tabIndex={0} role="group" aria-label={name + ', scrollable'}>
      {/* A narrow window shows rows as cards, which takes the roles from what is no table to it any more. */}
      <table role="table" aria-label={name}>
        <thead role="rowgroup"><tr role="row">{columns.map(c => <th role="columnheader" scope="col">{c}</th>)}</tr></thead>
        <tbody role="rowgroup">{shown.map(thing => <tr role="row">{row(thing).map((cell, i) => <td role="cell" data-label={columns[i]} class={typeof cell === 'number' ? 'number' : ''}>{typeof cell === 'number' ? cell.toLocaleString('en') : cell}</td>)}</tr>)}</tbody>
      </table>
    </div>
    {all && list.length > mostExpanded && <p>{(begin + 1).toLocaleString('en')} to {count(end, of)} of {total.toLocaleString('en')} are shown.</p>}
    <More n={total - end} of={of} hint={hint} />
    {!all && list.length > most && <p><button type="button" onClick={() => { show(0) }}>{list.length === total && total <= mostExpanded ? `Show all ${total.toLocaleString('en')}` : `Show ${Math.min(list.length, mostExpanded).toLocaleString('en')}`}</button></p>}
    {all && list.length > mostExpanded && <p>
      {begin > 0 && <><button type="button" onClick={() => { show(Math.max(0, begin - mostExpanded)) }}>Show the {mostExpanded.toLocaleString('en')} before</button>{' '}</>}
      {left > 0 && <button type="button" onClick={() => { show(end) }}>Show the next {left.toLocaleString('en')}</button>}
    </p>}
  </>
}

// Pods links to pods, with commas between.
export const Pods = ({ list }: { list: string[] }) => <>{list.slice(0, mostRows).map((p, i) => <>{i > 0 && ', '}{podLink(p)}</>)}{list.length > mostRows && ` and ${count(list.length - mostRows, 'more pod')}`}</>

export function Region({ name, children }: { name: string; children: ComponentChildren }) {
  const id = 'region-' + name.replace(/ /g, '-')
  return <section aria-labelledby={id}><h2 id={id}>{name}</h2>{children}</section>
}

export const Line = ({ of, pods }: { of: RecordOf; pods: boolean }) =>
  of.type === 'Process' ? <li><time dateTime={of.time}>{clock(of.time)}</time> <b><bdi>{of.message}</bdi></b></li> : <li><time dateTime={of.time}>{clock(of.time)}</time> {pods && podLink(of.pod)} {of.type === 'Evicted' ? <>evicted from {nodeLink(of.node ?? '')} for {podLink(of.for ?? '')}</> : <span class="words">{recordText(of)}</span>}</li>

export const Records = ({ list, pods }: { list: RecordOf[]; pods: boolean }) => <ol class="records">{list.map(r => <Line of={r} pods={pods} />)}</ol>

// CopyButton copies a text.
export function CopyButton({ name, text }: { name: string; text: string }) {
  const [said, set] = useState('')
  const say = (text: string) => { set(text); setTimeout(() => { set('') }, 2000) }
  const copy = () => { void navigator.clipboard.writeText(text).then(() => { say(' copied') }, () => { say(' the browser does not let the page copy') }) }
  return <><button type="button" onClick={copy}>{name}</button><span role="status" class="quiet">{said}</span></>
}
