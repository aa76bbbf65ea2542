// A record at any time of it, and one day under two configurations.
import { h, Fragment } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Compared, Day, Move, Replayed, Sample, Summary } from './api'
import { at, capabilities, exported, moveTo, nodes, nodesChanged } from './data'
import { Line } from './line'
import { NodeMap } from './map'
import { describe, groupsOf, share } from './nodes'
import { type Answer, More, mostRows, nodeLink, podLink, Records, Region, Shown, Table, useAnswer } from './parts'
import { go } from './route'
import { clock, count } from './text'

export function Replay({ query }: { query: URLSearchParams }) {
  const answer = useAnswer<Replayed>('replay', {})
  if (lacksRecord(answer)) return <NoRecord what="Replay shows the cluster at any time of a record" config="" />
  return <Shown answer={answer} what="the record">{r => <Player r={r} asked={query.get('at') ?? ''} />}</Shown>
}

// lacksRecord reports whether the page's server has no record, or no other configuration, to answer from.
const lacksRecord = (answer: Answer<unknown>): boolean => !exported && answer.problem?.code === 404

// NoRecord says how to come to a view that needs a record.
function NoRecord({ what, config }: { what: string; config: string }) {
  const has = capabilities.value?.identity === 'record'
  return <div class="note">
    <p>{what}. {has ? 'This page was started with the record alone: start it with both.' : 'This page shows no record. Make one, and open it:'}</p>
    <pre tabIndex={0}>{!has && 'berth record --to DIR\n'}berth view --record DIR{config}</pre>
  </div>
}

const playTime = 500
const playSteps = 100

function Player({ r, asked }: { r: Replayed; asked: string }) {
  const from = Date.parse(r.from), to = Date.parse(r.to)
  const wanted = Date.parse(asked), time = Number.isNaN(wanted) ? to : Math.min(Math.max(wanted, from), to)
  const stop = Math.max(1, Math.round((to - from) / 1000)), last = from + Math.floor((to - from) / stop) * stop // of the slider
  const [playing, play] = useState(false)
  // 1: a browser's times are in whole milliseconds, and a step is to be over.
  const decisions = useMemo(() => r.decisions.map(d => Date.parse(d) + 1), [r])
  const show = (t: number) => { go('#/replay?at=' + encodeURIComponent(new Date(Math.min(Math.max(t, from), to)).toISOString()), true) }
  useEffect(() => {
    const timer = setTimeout(() => { moveTo(time === to ? r.to : new Date(time).toISOString()) }, 100)
    return () => { clearTimeout(timer) }
  }, [time])
  useEffect(() => {
    if (!playing) return
    if (time >= to) { play(false); return }
    const timer = setTimeout(() => { show(time + (to - from) / playSteps) }, playTime)
    return () => { clearTimeout(timer) }
  }, [playing, time])
  const step = () => { show(decisions.find(d => d > time) ?? to) }
  const shown = new Date(time).toISOString()
  return <>
    {r.cut && <p class="note">The record is cut: {r.cut}. What comes before is shown.</p>}
    {r.redacted && !exported && <p class="note">The names of this record are redacted: one name is replaced by one hash, wherever it stands.</p>}
    {asked !== '' && wanted < from && <p class="note">The record begins later than the time that was asked for, at {clock(r.from)}.</p>}
    {(r.notes ?? []).map(n => <p class="note">{n}</p>)}
    {exported ? <p class="note">This file holds the end of the record. "berth view --record" shows any time of it.</p> : <div class="bar">
      <button type="button" aria-pressed={playing} onClick={() => { if (time >= to) show(from); play(!playing) }}>Play</button>
      <button type="button" onClick={step}>Step</button>
      <label class="wide">Time <input type="range" min={from} max={to} step={stop} value={time} aria-label="Time" aria-valuetext={shown} onInput={e => { play(false); const t = Number(e.currentTarget.value); show(t >= last ? to : t) }} /></label>
    </div>}
    <p class="lead">{clock(shown)}</p>
    <Then />
    <Region name="The whole record"><p>{clock(r.from)} to {clock(r.to)}, under {r.replayed.name}: {count(r.same, 'pod')} on the node that the record has, {r.elsewhere.length.toLocaleString('en')} elsewhere.</p>
      <Lines days={[r.replayed]} />
      <Moves name="Elsewhere" columns={['Pod', 'Recorded', 'Replayed']} list={r.elsewhere} />
    </Region>
  </>
}

// Then is the cluster at the time that is shown.
function Then() {
  const changed = nodesChanged.value
  const groups = useMemo(() => groupsOf([...nodes.values()], 'zone'), [changed])
  const records = useAnswer<{ records: import('./api').RecordOf[] }>('records', { limit: '10' })
  return <>
    <Shown answer={useAnswer<Summary>('summary', {})} what="the cluster at that time">{s => <p>{count(s.nodes, 'node')} with {count(s.pods, 'pod')}; <a href="#/queue">{count(s.queue.active + s.queue.backoff + s.queue.errorBackoff + s.queue.unschedulable + s.queue.gated + s.queue.inFlight, 'pod waits', 'pods wait')}</a>. The other views show this time, too.</p>}</Shown>
    {nodes.size > 0 && <NodeMap groups={groups} part={n => share(n, 'cpu')} describe={describe} changed={changed} open={n => { go('#/node/' + encodeURIComponent(n.name)) }} />}
    <Region name="Last records"><Shown answer={records} what="the records">{list => list.records.length > 0 ? <Records list={[...list.records].reverse()} pods /> : <p>Nothing has happened yet{at.value && ' at this time'}.</p>}</Shown></Region>
  </>
}

const percentOf = (n: number) => `${(100 * n).toFixed(1)}%`
const whole = (n: number) => Math.round(n).toLocaleString('en')
const seconds = (n: number) => `${n.toFixed(n < 10 ? 3 : 0)} s`

const charts: [string, (s: Sample) => number, (n: number) => string][] = [
  ['Pods that wait', s => s.pending, whole], ['CPU requested', s => s.cpu, percentOf], ['Memory requested', s => s.memory, percentOf],
  ['Free CPU where a pod of average size does not fit', s => s.stranded, percentOf], ['Empty nodes', s => s.empty, whole]]

function Lines({ days }: { days: Day[] }) {
  return <div class="lines">{charts.map(([name, of, format]) => <Line name={name} format={format} curves={days.map((d, i) => ({ name: days.length > 1 ? 'AB'[i] : undefined, values: d.samples.map(of) }))} />)}</div>
}

function Moves({ name, columns, list }: { name: string; columns: string[]; list: Move[] }) {
  return list.length === 0 ? <></> : <Table name={name} columns={columns} list={list} most={50} of="pod" row={m => [podLink(m.pod), m.a && nodeLink(m.a), m.b && nodeLink(m.b)]} />
}

const figures: [string, (d: Day) => string][] = [
  ['Pods that arrived', d => whole(d.arrived)], ['Placed', d => whole(d.placed)], ['Pending at the end', d => whole(d.pending)], ['Deleted before they had a node', d => whole(d.left)],
  ['Decisions', d => whole(d.decisions)], ['Preempted pods', d => whole(d.preemptions)],
  ['Wait, median', d => seconds(d.waitP50)], ['Wait, 90%', d => seconds(d.waitP90)], ['Wait, 99%', d => seconds(d.waitP99)], ['Wait, longest', d => seconds(d.waitMax)],
  ['CPU requested, mean', d => percentOf(d.cpu)], ['Memory requested, mean', d => percentOf(d.memory)], ['Free CPU stranded, mean', d => percentOf(d.stranded)],
  ['Empty nodes, mean', d => d.empty.toFixed(1)], ['Empty nodes at the end', d => whole(d.emptyAtEnd)]]

// waits says under which configuration pods waited longer.
function waits(a: Day, b: Day): string {
  const parts: [string, number, number][] = [['median', a.waitP50, b.waitP50], ['90%', a.waitP90, b.waitP90], ['99%', a.waitP99, b.waitP99], ['longest', a.waitMax, b.waitMax]]
  const said = parts.filter(([, x, y]) => seconds(x) !== seconds(y)).map(([name, x, y]) => `${name} ${seconds(y)} instead of ${seconds(x)}`)
  if (said.length === 0) return 'Pods waited equally long under both.'
  const longer = parts.filter(([, x, y]) => y > x).length, shorter = parts.filter(([, x, y]) => y < x).length
  return `Pods waited ${longer > 0 && shorter > 0 ? 'partly longer, partly shorter' : longer > 0 ? 'longer' : 'shorter'} under B than under A: ${said.join(', ')}.`
}

function Workloads({ name, list }: { name: string; list: Compared['workloads'] }) {
  return list.length === 0 ? <></> : <Region name={name}><Table name={name} columns={['Workload', 'By', 'Pods', 'Elsewhere']} list={list} of="workload" row={w => [<bdi>{w.workload}</bdi>, w.because ?? '', w.pods, w.elsewhere]} /></Region>
}

export function Compare() {
  const answer = useAnswer<Compared>('compare', {})
  if (lacksRecord(answer)) return <NoRecord what="Compare shows a recorded day under the record's configuration beside another one" config=" --config NEW.yaml" />
  return <Shown answer={answer} what="the comparison">{c => {
    return <>
      <p role="status" aria-label="Verdict" class="lead">{waits(c.a, c.b)}</p>
      <p>{clock(c.from)} to {clock(c.to)}: {count(c.same, 'pod')} on the same node under both, {whole(c.elsewhere.length)} elsewhere, {whole(c.onlyA.length)} placed under A alone, {whole(c.onlyB.length)} under B alone.</p>
      <p>A (solid) is <bdi>{c.a.name}</bdi>, B (dashed) is <bdi>{c.b.name}</bdi>.</p>
      {(c.notes ?? []).map(n => <p class="note">{n}</p>)}
      <Workloads name="Worse under B" list={c.workloads.filter(w => w.verdict === 'worse')} />
      <Workloads name="Better under B" list={c.workloads.filter(w => w.verdict === 'better')} />
      <Region name="Figures"><Table name="Figures" columns={['Figure', 'A', 'B']} list={figures} of="figure" row={([name, of]) => [name, of(c.a), of(c.b)]} /></Region>
      <Region name="Over time"><Lines days={[c.a, c.b]} /></Region>
      <Region name="Pods">{c.elsewhere.length + c.onlyA.length + c.onlyB.length === 0 && <p>Every pod is on the same node under both.</p>}
        <Moves name="Elsewhere under B" columns={['Pod', 'A', 'B']} list={c.elsewhere} />
        <Moves name="Placed under A alone" columns={['Pod', 'A', 'B']} list={c.onlyA} />
        <Moves name="Placed under B alone" columns={['Pod', 'A', 'B']} list={c.onlyB} />
      </Region>
      {([['Preempted under A alone', c.evictedA], ['Preempted under B alone', c.evictedB], ['Empty at the end under A alone', c.emptyA], ['Empty at the end under B alone', c.emptyB]] as [string, string[]][]).map(([name, list]) => list.length > 0 && <Region name={name}><p class="words">{list.slice(0, mostRows).join(', ')}</p><More n={list.length - mostRows} of={name.startsWith('Empty') ? 'node' : 'pod'} /></Region>)}
    </>
  }}</Shown>
}
