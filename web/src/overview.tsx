// The cluster in one sentence, what happens a minute, and what pods wait for.
import { h, Fragment } from 'preact'
import type { Difference, History, Others, Queue, RecordOf, ShadowAnswer, Summary } from './api'
import { at, capabilities, counts, isStill } from './data'
import { Line } from './line'
import { nodeLink, Part, podLink, Region, Shown, Table, useAnswer, useTick } from './parts'
import { ago, clock, count, recordText } from './text'

export const waitingOf = (q: Queue): number => q.active + q.backoff + q.errorBackoff + q.unschedulable + q.gated + q.inFlight

const places = (q: Queue): [string, number][] => [['active', q.active], ['in backoff', q.backoff + q.errorBackoff], ['unschedulable', q.unschedulable], ['gated', q.gated], ['in flight', q.inFlight]]

function sentence(s: Summary): string {
  const live = counts.value ?? s, waiting = waitingOf(live.queue)
  const has = `${count(live.nodes, 'node')} with ${count(live.pods, 'pod')}`
  if (waiting === 0) return `${has}. No pod waits.`
  const first = s.blocking.length > 0 ? `; the most frequent cause (${count(s.blocking[0].pods, 'pod')}): ${s.blocking[0].reason} (${s.blocking[0].plugin})` : ''
  return `${has}. ${count(waiting, 'pod waits', 'pods wait')}${first}.`
}

// ends says how attempts ended: one that found a node may be refused yet, or fail.
const ends: Record<string, string> = { Scheduled: 'found a node', Unschedulable: 'found none', Preempting: 'found pods to evict', Waiting: 'found a node and wait in Permit', Gated: 'gated', Error: 'failed' }

// lately names the time that the figures are about: it is shorter where the records do not reach back a minute.
const lately = (seconds: number): string => seconds === 0 || Math.round(seconds) >= 60 ? 'Last minute' : `Last ${Math.round(seconds)} s`

export function Overview() {
  const answer = useAnswer<Summary>('summary', {}, isStill() ? 0 : 5)
  return <Shown answer={answer} what="the overview">{s => {
    const live = counts.value ?? s
    return <>
      {s.shadow && <p class="note">This is a shadow: it compares its choices with those of the scheduler in charge and schedules nothing.</p>}
      {s.hosted && <p class="note">The scheduler has hosted plugins, so that it cannot say why a pod waits; what it recorded is shown.</p>}
      {s.refused && <p class="note">A configuration was refused {ago(s.refused.time)} ago{s.refused.reason ? ': ' + s.refused.reason : '.'}</p>}
      {capabilities.value?.identity === 'record' && <p class="note">Record, {at.value ? `at ${clock(at.value)}; it ` : ''}ends at {clock(capabilities.value.time)}.</p>}
      <p class="lead">{sentence(s)}</p>
      {s.otherSchedulers && <OthersNote of={s.otherSchedulers} />}
      {s.shadow && <Shadow />}
      {waitingOf(live.queue) === 0 && s.lastDecision && <LastDecision of={s.lastDecision} />}
      {s.oldest && waitingOf(live.queue) > 0 && <p>The oldest pod that waits was made {ago(s.oldest)} ago.</p>}
      <Region name="Queue"><ul class="figures">{places(live.queue).map(([name, n]) => <li><a href={'#/queue?place=' + encodeURIComponent({ 'in backoff': 'backoff', 'in flight': 'in flight' }[name] ?? name)}><b>{n.toLocaleString('en')}</b> {name}</a></li>)}</ul></Region>
      <Region name={lately(s.rates.seconds)}>{s.rates.seconds === 0 ? <p>Nothing is recorded yet.</p> : <ul class="figures">
        <li><b>{s.rates.bound.toLocaleString('en')}</b> bound</li>
        {Object.entries(s.rates.attempts).map(([result, n]) => <li><a href={'#/decisions?result=' + encodeURIComponent(result)}><b>{n.toLocaleString('en')}</b> {n === 1 ? 'attempt' : 'attempts'} {ends[result] ?? result}</a></li>)}
        <li><a href="#/decisions?result=Evicted"><b>{s.rates.evicted.toLocaleString('en')}</b> evicted</a></li>
        {s.rates.binding.pods > 0 && <li><b>{s.rates.binding.p50.toFixed(2)} s</b> a binding takes (p99 {s.rates.binding.p99.toFixed(2)} s)</li>}
      </ul>}</Region>
      <Region name="Causes"><Causes list={s.blocking} /></Region>
      {s.rates.preemptions?.length ? <Region name="Preemptions"><Table name="Preemptions" columns={['For', 'Node', 'Evicted', 'Victims']} list={s.rates.preemptions} of="pod"
        row={p => [podLink(p.for), nodeLink(p.node), p.evicted, p.victims.join(', ') + (p.evicted > p.victims.length ? ', …' : '')]} /></Region> : null}
      {!isStill() && <Lines />}
      <p class="quiet">{s.log.oldest ? `Records begin ${clock(s.log.oldest)}.` : 'There is no record yet.'}</p>
    </>
  }}</Shown>
}

// OthersNote says which schedulers pods ask for that are not this one. Another one of that name may well be there.
function OthersNote({ of }: { of: Others }) {
  const link = (name: string) => '#/queue?place=other%20scheduler&reason=' + encodeURIComponent(name)
  return <p class="note">{of.more && 'At least '}<a href={link('')}>{count(of.pods, 'pod asks', 'pods ask')} for schedulers that are not this one</a>: {of.schedulers.map((s, i) => <>{i > 0 && ', '}<a href={link(s.name)}><bdi>{s.name}</bdi></a> {s.pods.toLocaleString('en')}</>)}{of.names > of.schedulers.length && ', …'}. This one is <bdi>{of.profiles.join(', ')}</bdi>.</p>
}

const results: Record<string, string> = {
  same: 'the same node', tie: 'another node of the same score', nominated: 'the node that pods were preempted from', stale: 'among the best as the scheduler saw the cluster',
  sampled: 'a lower score, as only some nodes were looked at', lower: 'a lower score', infeasible: 'a node that Berth would reject', unschedulable: 'a node, where Berth would find none', not_compared: 'not compared',
}

// Shadow shows how the choices of the scheduler in charge compare, and where they differ.
function Shadow() {
  return <Part<ShadowAnswer> name="Choices" path="shadow" what="what the shadow found" seconds={10}>{s => <>
    <Region name="Choices">
      {s.choices.length === 0 ? <p>The scheduler in charge has bound no pod since the shadow began.</p> : <Table name="Choices" columns={['Pods', 'The scheduler chose', 'By plugin', 'Profile']} list={s.choices} of="kind" row={c => [c.pods, results[c.result] ?? c.result, c.plugin ?? '', c.profile]} />}
      <p>{s.placeable === 0 ? 'No pod waits that Berth would place.' : `${count(s.placeable, 'pod waits', 'pods wait')} that Berth would place.`}</p>
    </Region>
    <Region name="Differences">{!s.differences?.length ? <p>No difference was found so far.</p> : <Table name="Differences" columns={['Time', 'Pod', 'Node there', 'Node here', 'Why']} list={s.differences} of="difference"
      row={d => [clock(d.time), podLink(d.pod), nodeLink(d.node), d.berthNode ? nodeLink(d.berthNode) : 'none', <span class="words">{because(d)}</span>]} />}</Region>
  </>}</Part>
}

// because says why the shadow chose otherwise. A score that is 0 is not in the answer: only beside scores that
// differ was there one.
function because(d: Difference): string {
  const what = results[d.result] ?? d.result
  if (d.reasons?.length) return `${what}: ${d.reasons.join('; ')}`
  if (!d.scores?.length) return what
  const scores = d.scores.map(s => `${s.plugin} ${s.node} instead of ${s.best}${s.weight !== 1 ? ` × ${s.weight}` : ''}`)
  return `${what}, ${d.score ?? 0} instead of ${d.bestScore ?? 0}: ${scores.join(', ')}`
}

// LastDecision says when the scheduler decided last: where no pod waits, that it is not stuck.
function LastDecision({ of }: { of: RecordOf }) {
  useTick()
  return <p>Last decision {isStill() ? 'at ' + clock(of.time) : ago(of.time) + ' ago'}: {podLink(of.pod)}, <span class="words">{recordText(of)}</span></p>
}

// Causes ranks what blocks the pods that wait. One that was never tried, or whose attempt is not in the log any
// more, is not among them.
export function Causes({ list }: { list: Summary['blocking'] }) {
  if (list.length === 0) return <p>No pod that waits was rejected.</p>
  return <Table name="Causes" columns={['Pods', 'Plugin', 'Reason', 'Workloads']} list={list} of="cause" row={b => [b.pods, b.plugin,
    <a href={'#/queue?place=&reason=' + encodeURIComponent(b.reason)}><bdi>{b.reason}</bdi></a>, (b.workloads ?? []).map((w, i) => <>{i > 0 && ', '}<a href={`#/queue?place=&reason=${encodeURIComponent(b.reason)}&workload=${encodeURIComponent(w.name)}`}><bdi>{w.name}</bdi></a> ({w.pods})</>)]} />
}

// Lines draws the last hour.
const Lines = () => <Part<History> name="Last hour" path="history" what="the last hour" seconds={15}>{t => <Curves t={t} />}</Part>

// slowBindings says that bindings take much longer in the last minute than in the hour before, "" if they do not. Half
// of them may be slow: then the median of some samples is as usual.
function slowBindings({ binding, every }: History): string {
  const minute = Math.round(60 / every), of = (from: number, to?: number) => (binding?.p50 ?? []).map((p50, i) => binding?.pods?.[i] ? p50 : -1).slice(from, to).filter(p50 => p50 >= 0)
  const lately = of(-minute), before = of(0, -minute).sort((a, b) => a - b)
  const usual = before[before.length >> 1], slow = lately.filter(p50 => p50 >= Math.max(0.2, 5 * usual))
  if (before.length < minute || slow.length === 0 || slow.length * 3 < lately.length) return ''
  return `Bindings are slow in the last minute: ${Math.max(...slow).toFixed(2)} s, where ${usual.toFixed(2)} s is usual. The API server takes that long, or a webhook that it asks, or a Permit or PreBind plugin.`
}

function Curves({ t }: { t: History }) {
  if (t.times.length < 2) return <></>
  const waiting = t.times.map((_, i) => Object.values(t.queue).reduce((s, column) => s + column[i], 0))
  const round = (n: number) => Number(n.toFixed(1)).toLocaleString('en')
  const each = (column: number[]) => column.map(n => n / t.every), hour = Math.max(3600 / t.every, t.times.length) - 1
  const slow = slowBindings(t)
  return <Region name="Last hour">{slow && <p class="note">{slow}</p>}<p class="quiet">Each line is of an hour, and ends now{t.times.length < hour ? `; what happened before the last ${ago(t.times[0])} is not known` : ''}.</p><div class="lines">
    <Line name="Pods that wait" curves={[{ values: waiting }]} format={round} last="now" steps={hour} />
    <Line name="Bound a second" curves={[{ values: each(t.bound) }]} format={round} last="now" steps={hour} />
    <Line name="Evicted a second" curves={[{ values: each(t.evicted) }]} format={round} last="now" steps={hour} />
  </div></Region>
}
