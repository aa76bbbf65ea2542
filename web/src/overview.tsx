// The cluster in one sentence, what happens a minute, and what pods wait for.
import { h, Fragment } from 'preact'
import type { History, Queue, Summary } from './api'
import { counts, isStill } from './data'
import { Line } from './line'
import { Region, Shown, Table, useAnswer } from './parts'
import { ago, clock, count } from './text'

export const waitingOf = (q: Queue): number => q.active + q.backoff + q.errorBackoff + q.unschedulable + q.gated + q.inFlight

const places = (q: Queue): [string, number][] => [['active', q.active], ['in backoff', q.backoff + q.errorBackoff], ['unschedulable', q.unschedulable], ['gated', q.gated], ['in flight', q.inFlight]]

function sentence(s: Summary): string {
  const live = counts.value ?? s, waiting = waitingOf(live.queue)
  const has = `${count(live.nodes, 'node')} with ${count(live.pods, 'pod')}`
  if (waiting === 0) return `${has}. No pod waits.`
  const first = s.blocking.length > 0 ? `; the most frequent cause, of ${s.blocking[0].pods}: ${s.blocking[0].reason} (${s.blocking[0].plugin})` : ''
  return `${has}. ${count(waiting, 'pod waits', 'pods wait')}${first}.`
}

export function Overview() {
  const answer = useAnswer<Summary>('summary', {}, isStill() ? 0 : 5)
  return <Shown answer={answer} what="the overview">{s => {
    const live = counts.value ?? s, perMinute = (n: number) => Math.round(n * 60 / Math.max(1, s.rates.seconds))
    return <>
      {s.shadow && <p class="note">This is a shadow: it compares its choices with those of the scheduler in charge and schedules nothing.</p>}
      {s.hosted && <p class="note">The scheduler has hosted plugins, so that it cannot say why a pod waits; what it recorded is shown.</p>}
      {s.refused && <p class="note">A configuration was refused {ago(s.refused.time)} ago{s.refused.reason ? ': ' + s.refused.reason : '.'}</p>}
      <p class="lead">{sentence(s)}</p>
      {s.oldest && waitingOf(live.queue) > 0 && <p>The oldest pod that waits was made {ago(s.oldest)} ago.</p>}
      <Region name="Queue"><ul class="figures">{places(live.queue).map(([name, n]) => <li><a href={'#/queue?place=' + encodeURIComponent({ 'in backoff': 'backoff', 'in flight': 'in flight' }[name] ?? name)}><b>{n.toLocaleString('en')}</b> {name}</a></li>)}</ul></Region>
      <Region name="Last minute"><ul class="figures">
        {Object.entries(s.rates.attempts).map(([result, n]) => <li><b>{perMinute(n).toLocaleString('en')}</b> {result.toLowerCase()}</li>)}
        <li><b>{perMinute(s.rates.bound).toLocaleString('en')}</b> bound</li>
        <li><b>{perMinute(s.rates.evicted).toLocaleString('en')}</b> evicted</li>
        {s.rates.binding.pods > 0 && <li><b>{s.rates.binding.p50.toFixed(2)} s</b> a binding takes (p99 {s.rates.binding.p99.toFixed(2)} s)</li>}
      </ul></Region>
      <Region name="Causes">{s.blocking.length === 0 ? <p>Nothing blocks a pod.</p> : <Causes list={s.blocking} />}</Region>
      {s.rates.preemptions?.length ? <Region name="Preemptions"><Table name="Preemptions" columns={['For', 'Node', 'Evicted', 'Victims']} rows={s.rates.preemptions.map(p => [p.for, p.node, p.evicted, p.victims.join(', ')])} /></Region> : null}
      {!isStill() && <Lines />}
      <p class="quiet">{s.log.oldest ? `Records begin ${clock(s.log.oldest)}.` : 'There is no record yet.'}</p>
    </>
  }}</Shown>
}

export function Causes({ list }: { list: Summary['blocking'] }) {
  return <Table name="Causes" columns={['Pods', 'Plugin', 'Reason', 'Workloads']} rows={list.map(b => [b.pods, b.plugin,
    <a href={'#/queue?reason=' + encodeURIComponent(b.reason)}><bdi>{b.reason}</bdi></a>, (b.workloads ?? []).map(w => `${w.name} (${w.pods})`).join(', ')])} />
}

// Lines draws the last hour.
function Lines() {
  const answer = useAnswer<History>('history', {}, 15)
  const t = answer.data
  if (!t || t.times.length < 2) return <></>
  const waiting = t.times.map((_, i) => Object.values(t.queue).reduce((s, column) => s + column[i], 0))
  const round = (n: number) => Number(n.toFixed(1)).toLocaleString('en')
  const each = (column: number[]) => column.map(n => n / t.every)
  return <Region name="Last hour"><div class="lines">
    <Line name="Pods that wait" curves={[{ values: waiting }]} format={round} last="now" />
    <Line name="Bound a second" curves={[{ values: each(t.bound) }]} format={round} last="now" />
    <Line name="Evicted a second" curves={[{ values: each(t.evicted) }]} format={round} last="now" />
  </div></Region>
}
