// Why a pod does not fit on each node: the map in the colours of causes.
import { h, Fragment } from 'preact'
import { useMemo } from 'preact/hooks'
import type { NodeBlockers, PendingList } from './api'
import { capabilities, exported, isStill, type Node } from './data'
import { cssOf, inkOf, NodeMap, rgb } from './map'
import { describe, groupsOf, GroupTable, NodeTable, openNode } from './nodes'
import { More, mostRows, podLink, Region, Shown, Trouble, useAnswer } from './parts'
import { count } from './text'

// answersWhy tells whether it can be asked why a pod does not fit.
export const answersWhy = (): boolean => !exported && (capabilities.value?.paths?.includes('blockers') ?? false)

// Cause is why a pod does not fit on nodes: what blocks it there first.
interface Cause { sign: string; colour: number; text: string; plugin?: string; nodes: number }

// The colours of causes, the one on most nodes first, can be told from each other by people who see some colours
// alike. The rest are grey. Each has a letter beside.
const colours = [rgb(213, 94, 0), rgb(86, 180, 233), rgb(240, 228, 66), rgb(204, 121, 167), rgb(0, 90, 160), rgb(230, 159, 0), rgb(110, 70, 40)]
const grey = rgb(128, 128, 128)

// ByCause has the causes of the nodes that are shown. Their order, signs and colours, and how many nodes fit, are
// those of the whole answer: whoever looks at fewer nodes sees the same.
interface ByCause { list: Cause[]; of: (n: Node) => Cause; say: (n: Node) => string; fitting: number }

function causesOf(a: NodeBlockers, shown: Node[]): ByCause {
  const fits: Cause = { sign: '✓', colour: rgb(0, 158, 115), text: 'fits', nodes: 0 }, here: Cause = { sign: '●', colour: rgb(0, 158, 115), text: 'the pod is here', nodes: 0 }
  const unknown: Cause = { sign: '?', colour: grey, text: 'not asked about yet', nodes: 0 }
  const byText = new Map<string, Cause>()
  const causes = a.blockers.values.map(list => {
    const key = JSON.stringify([list[0].plugin, list[0].reasons])
    const cause = byText.get(key) ?? { sign: '', colour: grey, text: list[0].reasons.join(', ') || list[0].code, plugin: list[0].plugin, nodes: 0 }
    byText.set(key, cause)
    return cause
  })
  const at = new Map(a.names.map((name, i) => [name, a.blockers.of[i]]))
  const of = (n: Node): Cause => {
    const i = at.get(n.name)
    return n.name === a.node ? here : i === undefined ? unknown : i < 0 ? fits : causes[i]
  }
  const everywhere = new Map<Cause, number>()
  for (const i of a.blockers.of) if (i >= 0) everywhere.set(causes[i], (everywhere.get(causes[i]) ?? 0) + 1)
  for (const n of shown) of(n).nodes++
  const blocking = [...byText.values()].sort((x, y) => (everywhere.get(y) ?? 0) - (everywhere.get(x) ?? 0))
  blocking.forEach((c, i) => { c.sign = i < 26 ? String.fromCharCode(65 + i) : '*'; c.colour = colours[i] ?? grey })
  const say = (n: Node): string => {
    const c = of(n), i = at.get(n.name)
    if (c.plugin === undefined || i === undefined) return c.text
    const also = a.blockers.values[i].slice(1).map(b => b.reasons.join(', ') || b.code)
    return `does not fit: ${c.text} (${c.plugin})${also.length > 0 ? '; also: ' + also.join('; ') : ''}`
  }
  return { list: [...blocking, fits, here, unknown].filter(c => c.nodes > 0), of, say, fitting: a.blockers.of.filter((i, k) => i < 0 && a.names[k] !== a.node).length }
}

interface Options { list: Node[]; group: string; table: boolean; changed: number }

export function WhyMap({ pod, choose, ...o }: Options & { pod: string; choose: (pod: string) => void }) {
  const waiting = useAnswer<PendingList>('pending', { limit: '100' })
  return <>
    <form class="bar" onSubmit={e => { e.preventDefault() }}>
      <label class="wide">Pod <input key={pod} value={pod} list="waiting" placeholder="NAMESPACE/NAME" autocomplete="off" spellcheck={false} onChange={e => { choose(e.currentTarget.value.trim()) }} /></label>
      <datalist id="waiting">{waiting.data?.pods.map(p => <option value={p.pod} />)}</datalist>
    </form>
    {waiting.problem && <Trouble problem={waiting.problem} what="the pods that wait" again={waiting.again} />}
    {pod === '' ? <p>Which pod? Write NAMESPACE/NAME, or choose one of those that wait{waiting.data ? ` (${waiting.data.total.toLocaleString('en')})` : ''}.</p> : <Asked key={pod} pod={pod} {...o} />}
  </>
}

function Asked({ pod, ...o }: Options & { pod: string }) {
  return <Shown answer={useAnswer<NodeBlockers>('blockers', { pod }, isStill() ? 0 : 30)} what={'why pod ' + pod + ' does not fit'}>{a => <Causes a={a} {...o} />}</Shown>
}

function Causes({ a, list, group, table, changed }: Options & { a: NodeBlockers }) {
  const causes = useMemo(() => causesOf(a, list), [a, list])
  const groups = useMemo(() => groupsOf(list, group, group === 'why' ? n => `${causes.of(n).sign} ${causes.of(n).text}` : undefined), [list, group, causes])
  const pod = podLink(a.pod)
  if (a.message) return <p>No node was looked at for {pod}: {a.message}</p>
  return <>
    <p role="status" aria-label="Fit" class="lead">{pod} {a.node ? <>is on <bdi>{a.node}</bdi>, and would fit {count(causes.fitting, 'other node')}</> : <>fits {causes.fitting === 0 ? 'none' : causes.fitting.toLocaleString('en')} of {count(a.names.length, 'node')}</>}.</p>
    <ul class="causes" aria-label="Causes">{causes.list.slice(0, mostRows).map(c => <li>
      <span class="swatch key" aria-hidden="true" style={{ background: cssOf(c.colour), color: inkOf(c.colour) }}>{c.sign}</span>
      <span class="words">{count(c.nodes, 'node')}: {c.text}{c.plugin && <span class="quiet"> ({c.plugin})</span>}</span>
    </li>)}</ul>
    <More n={causes.list.length - mostRows} of="cause" />
    {table ? <NodeTable list={list} more={{ name: 'Fit', of: causes.say }} />
      : <NodeMap most={440} groups={groups} part={() => 0} colour={n => causes.of(n).colour} mark={n => causes.of(n).sign} describe={n => `${describe(n)}, ${causes.say(n)}`} changed={changed} open={openNode} />}
    <Region name="Groups of nodes"><GroupTable groups={groups} /></Region>
  </>
}
