// What a change would lead to: the words of "berth what-if", and what comes of them.
import { h, Fragment } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Budget, Problem, WhatIf } from './api'
import { capabilities, exported, nodes, nodesChanged, post, type Refused } from './data'
import { busy, nodeLink, podLink, Region, Table, Trouble } from './parts'
import { go, opened } from './route'
import { amount, count, resourceName } from './text'
import { Maps } from './whatifmaps'

// WhatIfView tries what a link or the form asks for. The page's server reads the cluster for it with the
// rights of the user. What the page was opened with waits for the button.
export function WhatIfView({ query }: { query: URLSearchParams }) {
  const asked = query.get('do') ?? '', able = capabilities.value?.identity !== 'record'
  const [words, setWords] = useState(asked)
  const [answer, set] = useState<{ trying?: boolean; data?: WhatIf; problem?: Problem }>({ data: exported?.answers['what-if'] as WhatIf | undefined })
  const stop = useRef(() => { /* nothing is tried yet */ })
  useEffect(() => () => { stop.current() }, [])
  useEffect(() => {
    setWords(asked)
    if (location.hash !== opened && able && !exported && asked !== '') run(asked)
  }, [asked])
  const run = (change: string) => {
    stop.current()
    const trying = new AbortController(), done = (outcome: { data?: WhatIf; problem?: Problem }) => { if (!trying.signal.aborted) set(outcome) }
    stop.current = () => { trying.abort() }
    busy.value++
    set({ trying: true })
    post<WhatIf>('what-if', { change, nodes: true }, trying.signal).then(data => { done({ data }) }, (e: unknown) => { done({ problem: (e as Refused).problem ?? { code: 0, reason: '', message: String(e) } }) }).finally(() => { busy.value-- })
  }
  const submit = (e: Event) => {
    e.preventDefault()
    const change = words.trim()
    if (change === asked && change !== '') run(change)
    else if (change !== '') go('#/what-if?do=' + encodeURIComponent(change), true)
  }
  if (exported) return answer.data ? <Outcome w={answer.data} /> : <p>This file holds no answer to such a question. "berth what-if --html FILE.html" writes one.</p>
  if (!able) return <p>What a change would lead to is not answered on a record. "berth what-if" answers it about a cluster or files.</p>
  return <>
    <p>Nothing changes in the cluster: the change is tried on a copy of it.</p>
    <form class="bar" onSubmit={submit}>
      <label class="wide">Change <input type="text" value={words} placeholder="drain NODE" onInput={e => { setWords(e.currentTarget.value) }} autocomplete="off" spellcheck={false} /></label>
      <button type="submit">Try</button>
    </form>
    <p class="quiet">The words are those of "berth what-if": drain, cordon, uncordon and remove NODE, lose-zone ZONE, add-nodes NUMBER SHAPE, scale WORKLOAD=NUMBER, evict POD, priority POD=VALUE, quota QUOTA max:RESOURCE=QUANTITY. Commas separate changes.</p>
    <Examples choose={setWords} />
    {answer.trying && <p role="status">Trying …</p>}
    {answer.problem && <Trouble problem={answer.problem} />}
    {answer.data && <Outcome w={answer.data} />}
  </>
}

// most bounds each of the lists, of which there are seven.
const most = 50

// holding returns the budgets that held pods back, by name, with how many pods.
function holding(w: WhatIf): Map<string, Budget & { pods: number }> {
  const by = new Map<string, Budget & { pods: number }>()
  for (const b of w.kept.flatMap(k => k.budgets ?? [])) by.set(b.budget, { ...b, pods: (by.get(b.budget)?.pods ?? 0) + 1 })
  return by
}

// verdict says in a sentence or two whether the change can be made, and which pods it costs their nodes.
function verdict(w: WhatIf, lost: number): string {
  const node = w.changes.length === 1 ? /^drain (\S+)$/.exec(w.changes[0])?.[1] : undefined
  const holds = [...holding(w)].map(([name, h]) => `the budget ${name} holds ${count(h.pods, 'pod')}`)
  const because = holds.length > 0 ? holds.join(', ') : count(w.kept.length, 'pod is', 'pods are') + ' not evicted'
  const able = w.kept.length > 0 ? `${node ? node + ' cannot be drained' : 'The change cannot be made in full'}: ${because}.` : `${node ? node + ' can be drained' : 'The change can be made'}.`
  return `${able} ${lost === 0 ? 'Each pod that has a node keeps it or finds another.' : count(lost, 'pod loses its node and finds', 'pods lose their nodes and find') + ' no other.'}${w.evicted.length > 0 ? ` ${count(w.evicted.length, 'pod is', 'pods are')} preempted.` : ''}`
}

function Outcome({ w }: { w: WhatIf }) {
  const moved = w.moved.filter(m => m.to !== null), isMoved = new Set(w.moved.map(m => m.pod))
  const placed = Object.entries(w.placements).filter(([pod]) => !isMoved.has(pod))
  const left = Object.entries(w.unplaced)
  const lost = left.filter(([pod]) => isMoved.has(pod)).length, held = holding(w)
  const budgets = [...w.budgets.map(b => ({ ...b, pods: held.get(b.budget)?.pods ?? 0 })),
    ...[...held.values()].filter(h => !w.budgets.some(b => b.budget === h.budget))]
  return <>
    {!w.cut && <p role="status" aria-label="Verdict" class="lead">{verdict(w, lost)}</p>}
    <p role="status" aria-label="Outcome">{w.changes.join(', ')}: {count(moved.length, 'pod moves', 'pods move')}, {count(left.length, 'pod')} without a node{left.length > lost ? ` (${(left.length - lost).toLocaleString('en')} had none before)` : ''}, {count(w.kept.length, 'pod')} not evicted.</p>
    {w.cut && <p class="note">{w.cut}</p>}
    <Region name="Not evicted">{w.kept.length === 0 ? <p>No eviction was refused.</p> : <Table name="Not evicted" columns={['Pod', 'Node', 'Why']} list={w.kept} most={most} of="pod" row={k => [podLink(k.pod), nodeLink(k.node), k.why]} />}</Region>
    <Region name="Budgets">{budgets.length === 0 ? <p>No disruption budget is concerned.</p> : <Table name="Budgets" columns={['Budget', 'Lets be down', 'Down', 'Respected', 'Pods it holds back']} list={budgets} most={most} of="budget" row={b => [b.budget, b.allowed, b.down, b.broken ? 'no' : 'yes', b.pods]} />}</Region>
    <Region name="Moved">{moved.length === 0 ? <p>No pod moves.</p> : <Table name="Moved" columns={['Pod', 'From', 'To']} list={moved} most={most} of="pod" row={m => [podLink(m.pod), nodeLink(m.from), nodeLink(m.to ?? '')]} />}</Region>
    {w.evicted.length > 0 && <Region name="Preempted"><Table name="Preempted" columns={['Pod', 'Node', 'For']} list={w.evicted} most={most} of="pod" row={e => [podLink(e.pod), nodeLink(e.node), podLink(e.for)]} /></Region>}
    <Region name="Without a node">
      {lost === 0 ? <p>{left.length === 0 ? 'Every pod has a node.' : 'No pod loses its node.'}</p> : <Unplaced name="Lost their node" list={left.filter(([pod]) => isMoved.has(pod))} />}
      {left.length > lost && <details><summary>{count(left.length - lost, 'pod')} had no node before either</summary><Unplaced name="Had no node before" list={left.filter(([pod]) => !isMoved.has(pod))} /></details>}
    </Region>
    {placed.length > 0 && <Region name="Placed"><Table name="Placed" columns={['Pod', 'Node']} list={placed} most={most} of="pod" row={([p, n]) => [podLink(p), nodeLink(n)]} /></Region>}
    <Maps w={w} />
    <Region name="Resources"><Table name="Resources" columns={['Resource', 'Free before', 'Free after', 'Allocatable after']} list={Object.entries(w.resources.after)} most={most} of="resource" row={([r, a]) => [resourceName(r), amount(r, w.resources.before[r]?.free ?? 0), amount(r, a.free), amount(r, a.allocatable)]} /></Region>
  </>
}

// Unplaced lists pods without a node.
const Unplaced = ({ name, list }: { name: string; list: [string, string][] }) =>
  <><h3>{name}: {count(list.length, 'pod')}</h3><Table name={name} columns={['Pod', 'Why']} list={list} most={most} of="pod" row={([pod, text]) => [podLink(pod), <span class="words">{text}</span>]} /></>

// Examples fill in the field with a change of this cluster. Nothing is tried before somebody says so.
function Examples({ choose }: { choose: (words: string) => void }) {
  const changed = nodesChanged.value
  const list = useMemo(() => {
    const all = [...nodes.values()].sort((a, b) => a.name < b.name ? -1 : 1), zone = all.find(n => n.zone !== '')?.zone
    return all.length === 0 ? [] : ['drain ' + all[0].name, zone ? 'lose-zone ' + zone : 'remove ' + all[0].name]
  }, [changed])
  return list.length === 0 ? <></> : <p>For example: {list.map(words => <><button type="button" onClick={() => { choose(words) }}>{words}</button> </>)}</p>
}

// FitView is the answer of "berth fit", in a page of one file.
export function FitView() {
  const answer = exported?.answers['fit'] as { text: string } | undefined
  return answer ? <pre class="words">{answer.text}</pre> : <p>"berth fit --html FILE.html" writes this view.</p>
}
