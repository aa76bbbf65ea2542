// The pods that wait, by place and cause, with when each is tried next.
import { h, Fragment } from 'preact'
import { useState } from 'preact/hooks'
import type { PendingList, PendingPod, Queue, Summary } from './api'
import { counts, isStill } from './data'
import { Causes, waitingOf } from './overview'
import { More, podLink, Region, Shown, Table, useAnswer, useTick } from './parts'
import { go } from './route'
import { ago, count, until } from './text'

// The tabs have a name, the places that the scheduler is asked about, and how many pods are there.
const tabs: [string, string, (q: Queue) => number][] = [
  ['All', '', waitingOf], ['Active', 'active', q => q.active], ['Backoff', 'backoff', q => q.backoff + q.errorBackoff], ['Unschedulable', 'unschedulable', q => q.unschedulable],
  ['Gated', 'gated', q => q.gated], ['In flight', 'in flight', q => q.inFlight],
]

// others is where pods are that ask for other schedulers: it has a tab while it is shown.
const others = 'other scheduler'

const idOf = (place: string): string => 'tab-' + (place.replace(' ', '-') || 'all')

const mostShown = 200

export function QueueView({ query }: { query: URLSearchParams }) {
  const summary = useAnswer<Summary>('summary', {}, isStill() ? 0 : 5)
  return <Shown answer={summary} what="the queue">{s => <Places summary={s} query={query} />}</Shown>
}

function Places({ summary, query }: { summary: Summary; query: URLSearchParams }) {
  const q = (counts.value ?? summary).queue
  const fullest = tabs.slice(1).reduce((a, b) => b[2](q) > a[2](q) ? b : a)
  const place = query.get('place') ?? fullest[1], elsewhere = summary.otherSchedulers?.pods ?? 0
  const all: typeof tabs = place === others ? [...tabs, ['Other schedulers', others, () => elsewhere]] : tabs
  const reason = query.get('reason') ?? '', namespace = query.get('ns') ?? '', workload = query.get('workload') ?? ''
  const set = (name: string, value: string) => { const next = new URLSearchParams(query); if (value || name === 'place') next.set(name, value); else next.delete(name); go('#/queue?' + next.toString(), true) }
  const move = (e: KeyboardEvent) => {
    const i = all.findIndex(t => t[1] === place), to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: all.length - 1 }[e.key]
    if (to === undefined) return
    e.preventDefault()
    const next = all[(to + all.length) % all.length][1]
    set('place', next)
    document.getElementById(idOf(next))?.focus()
  }
  return <>
    <div role="tablist" aria-label="Places" onKeyDown={move}>{all.map(([name, value, of]) =>
      <button type="button" role="tab" id={idOf(value)} aria-selected={value === place} aria-controls="queue-panel" tabIndex={value === place ? 0 : -1} onClick={() => { set('place', value) }}>{name} {of(q)}</button>)}</div>
    <div role="tabpanel" id="queue-panel" aria-labelledby={idOf(place)}>
      <form class="bar" onSubmit={e => { e.preventDefault() }}>
        <label>Namespace <input value={namespace} onChange={e => { set('ns', e.currentTarget.value) }} /></label>
        <label>{place === others ? 'Scheduler' : 'Reason'} <input value={reason} onChange={e => { set('reason', e.currentTarget.value) }} /></label>
        {workload && <span>Only of <bdi>{workload}</bdi> <button type="button" onClick={() => { set('workload', '') }}>Show all workloads</button></span>}
      </form>
      <Pods place={place} namespace={namespace} workload={workload} reason={reason} />
    </div>
    <Region name="Causes"><Causes list={summary.blocking} /></Region>
  </>
}

// Alike are pods of one workload with one message, which are one row until somebody unfolds it.
interface Alike { key: string; pods: PendingPod[] }

const rejected = (p: PendingPod): string => [...p.rejectedBy ?? [], ...p.pendingBy ?? []].join(', ') || (p.failedBy ?? '')

// alikeOf keeps the order of the pods that wait longest.
function alikeOf(list: PendingPod[]): Alike[] {
  const by = new Map<string, PendingPod[]>()
  for (const p of list) {
    const key = JSON.stringify(p.workload ? [p.workload, p.place, rejected(p), (p.message ?? '').replace(/"[^"]*"/g, '"..."')] : [p.pod]), of = by.get(key)
    if (of) of.push(p)
    else by.set(key, [p])
  }
  return [...by].map(([key, pods]) => ({ key, pods }))
}

function Pods({ place, namespace, workload, reason }: { place: string; namespace: string; workload: string; reason: string }) {
  const answer = useAnswer<PendingList>('pending', { place: place === 'backoff' ? 'backoff,error backoff' : place, namespace, reason, limit: String(mostShown), ...workload && { workload } }, isStill() ? 0 : 3)
  const [open, setOpen] = useState<string[]>([])
  return <Shown answer={answer} what="the pods">{list => list.pods.length === 0 ? <p>No pod waits here{namespace || reason || workload ? ' that matches' : ''}.</p> : <>
    <Table name="Pods" columns={['Pod', 'Waits for', 'In its place for', 'Attempts', 'Tried again', 'Rejected by', 'Message']} of="pod" most={2 * mostShown}
      list={alikeOf(list.pods).flatMap((g): { pod: PendingPod; of?: Alike; within?: boolean }[] => g.pods.length === 1 ? [{ pod: g.pods[0] }] : [{ pod: g.pods[0], of: g }, ...open.includes(g.key) ? g.pods.map(pod => ({ pod, within: true })) : []])}
      row={({ pod: p, of, within }) => [of ? <button type="button" aria-expanded={open.includes(of.key)} onClick={() => { setOpen(open.includes(of.key) ? open.filter(k => k !== of.key) : [...open, of.key]) }}>{open.includes(of.key) ? '▾' : '▸'} {count(of.pods.length, 'pod')} of <bdi>{p.workload}</bdi></button> : podLink(p.pod),
        ago(p.created ?? p.since), ago(p.since), of ? Math.max(...of.pods.map(x => x.attempts)) : p.attempts, <Next pod={of ? first(of.pods) : p} />, within ? '' : rejected(p), within ? '' : <span class="words">{p.message}</span>]} />
    <More n={list.total - list.pods.length} of="pod" hint=", which wait shorter: say which with a namespace or a reason" />
  </>}</Shown>
}

// first returns the pod that is tried again first, as far as it is known.
const first = (list: PendingPod[]): PendingPod => list.reduce((a, b) => b.until && (!a.until || b.until < a.until) ? b : a)

// Next counts down to the next attempt.
function Next({ pod }: { pod: PendingPod }) {
  useTick()
  if (pod.place === 'active') return <>when it is its turn</>
  if (pod.place === 'in flight') return <>it is being tried or bound</>
  if (pod.place === others) return <>by its own scheduler</>
  if (pod.place === 'gated') return <>once nothing gates it</>
  if (!pod.until) return <>when something changes</>
  return <>{pod.place === 'unschedulable' ? 'when something changes, at the latest in ' : 'in '}{until(pod.until)}</>
}
