// The pods that wait, by place and cause, with when each is tried next.
import { h, Fragment } from 'preact'
import type { PendingList, PendingPod, Queue, Summary } from './api'
import { counts, isStill } from './data'
import { Causes, waitingOf } from './overview'
import { podLink, Region, Shown, Table, useAnswer, useTick } from './parts'
import { go } from './route'
import { ago, until } from './text'

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
  const reason = query.get('reason') ?? '', namespace = query.get('ns') ?? ''
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
      </form>
      <Pods place={place} namespace={namespace} reason={reason} />
    </div>
    <Region name="Causes"><Causes list={summary.blocking} /></Region>
  </>
}

function Pods({ place, namespace, reason }: { place: string; namespace: string; reason: string }) {
  const answer = useAnswer<PendingList>('pending', { place: place === 'backoff' ? 'backoff,error backoff' : place, namespace, reason, limit: String(mostShown) }, isStill() ? 0 : 3)
  return <Shown answer={answer} what="the pods">{list => list.pods.length === 0 ? <p>No pod waits here{namespace || reason ? ' that matches' : ''}.</p> : <>
    <Table name="Pods" columns={['Pod', 'Waits for', 'In its place for', 'Attempts', 'Tried again', 'Rejected by', 'Message']} list={list.pods} of="pod" most={mostShown} total={list.total} hint=", which wait shorter: say which with a namespace or a reason"
      row={p => [podLink(p.pod), ago(p.created ?? p.since), ago(p.since), p.attempts, <Next pod={p} />, [...p.rejectedBy ?? [], ...p.pendingBy ?? []].join(', ') || p.failedBy, <span class="words">{p.message}</span>]} />
  </>}</Shown>
}

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
