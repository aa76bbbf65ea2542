// What a change would make of each node: two maps, before and after, and the same as a table.
import { h, Fragment } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { NodeColumns, WhatIf } from './api'
import { exported, type Node } from './data'
import { NodeMap, usualColour } from './map'
import { groupsOf, openNode, Scale, state } from './nodes'
import { nodeLink, Region, Table } from './parts'
import { count, percent, plain, resourceName } from './text'

// Change is a node before and after. One of both may not be there.
interface Change { before?: Node; after?: Node; leave: number; come: number }

function nodesOf(c: NodeColumns, names: string[]): Map<string, Node> {
  return new Map(c.names.map((name, i) => [name, {
    name, ready: c.ready[i], cordoned: c.cordoned[i], zone: c.zones[i], taints: '', labels: {},
    allocatable: names.map(r => c.resources[r]?.allocatable[i] ?? 0), requested: names.map(r => c.resources[r]?.requested[i] ?? 0),
  }]))
}

// The kinds of changes, each with its sign on the map, and what the legend calls them. A node has the first that holds.
const kinds: { sign: string; text: string; holds: (c: Change) => boolean }[] = [
  { sign: '+', text: 'added', holds: c => !c.before },
  { sign: '×', text: 'gone', holds: c => !c.after },
  { sign: '↕', text: 'pods leave, and others come', holds: c => c.leave > 0 && c.come > 0 },
  { sign: '↓', text: 'pods leave', holds: c => c.leave > 0 },
  { sign: '↑', text: 'pods come', holds: c => c.come > 0 },
  { sign: '!', text: 'cordoned, uncordoned or otherwise changed', holds: c => stateOf(c.before) !== stateOf(c.after) },
]
const stateOf = (n?: Node): string => n ? state(n) : ''
const kindOf = (c: Change) => kinds.find(k => k.holds(c))

// words say what happens to a node.
function words(c: Change): string {
  const all: string[] = []
  if (!c.before) all.push('added')
  if (!c.after) all.push('gone')
  if (c.before && c.after && state(c.before) !== state(c.after)) all.push(state(c.after) === 'ready' ? 'uncordoned' : state(c.after))
  if (c.leave > 0) all.push(count(c.leave, 'pod leaves', 'pods leave'))
  if (c.come > 0) all.push(count(c.come, 'pod comes', 'pods come'))
  return all.join(', ')
}

function changesOf(w: WhatIf, names: string[]): Map<string, Change> {
  const before = nodesOf(w.nodes!.before, names), after = nodesOf(w.nodes!.after, names)
  const all = new Map<string, Change>([...before.keys(), ...after.keys()].map(name => [name, { before: before.get(name), after: after.get(name), leave: 0, come: 0 }]))
  const at = (name: string): Change => all.get(name) ?? { leave: 0, come: 0 }
  for (const m of [...w.moved.map(m => m.from), ...w.gone.map(g => g.node)]) at(m).leave++
  for (const node of Object.values(w.placements)) at(node).come++
  return all
}

// mostOpen is how many rows are shown before anybody asks for them: what moves comes behind.
const mostOpen = 20

export function Maps({ w }: { w: WhatIf }) {
  const [by, setBy] = useState('fullest')
  const names = useMemo(() => Object.keys({ ...w.nodes?.before.resources, ...w.nodes?.after.resources }), [w])
  const changes = useMemo(() => w.nodes && changesOf(w, names), [w])
  const groups = useMemo(() => groupsOf([...changes?.values() ?? []].map(c => (c.before ?? c.after)!), 'zone'), [changes])
  if (!changes) return <></>
  const share = (n: Node, i: number) => n.allocatable[i] > 0 ? n.requested[i] / n.allocatable[i] : 0
  const part = (n: Node) => by === 'fullest' ? Math.max(...names.map((_, i) => share(n, i))) : share(n, names.indexOf(by))
  const of = (n: Node): Change => changes.get(n.name)!
  const at = (n: Node, r: string) => percent(n.requested[names.indexOf(r)], n.allocatable[names.indexOf(r)])
  const pods = (n: Node) => n.requested[names.indexOf('pods')]
  const load = (n?: Node) => n ? `${state(n)}, CPU ${at(n, 'cpu')}%, memory ${at(n, 'memory')}%, pods ${pods(n)}` : 'not there'
  const describe = (n: Node): string => {
    const c = of(n), what = words(c)
    return `${n.name}, zone ${plain(n.zone) || 'none'}, before: ${load(c.before)}; after: ${load(c.after)}${what && '; ' + what}`
  }
  const changed = [...changes.values()].filter(c => kindOf(c)), nameOf = (c: Change) => (c.before ?? c.after)!.name
  const rows = changed.sort((a, b) => kinds.indexOf(kindOf(a)!) - kinds.indexOf(kindOf(b)!) || (nameOf(a) < nameOf(b) ? -1 : 1))
  const both = (c: Change, of: (n: Node) => string) => `${c.before ? of(c.before) : 'none'} → ${c.after ? of(c.after) : 'none'}`
  const map = (name: string, side: 'before' | 'after') => <div>
    <h3>{name}</h3>
    <NodeMap name={'Nodes ' + side} most={320} groups={groups} part={() => 0} describe={describe} changed={0}
      colour={n => { const is = of(n)[side]; return is ? usualColour(is, part(is)) : 0 }} mark={n => side === 'before' && !of(n).before ? '' : kindOf(of(n))?.sign ?? ''} outlined
      open={n => { if (!exported && of(n).before) openNode(n) }} />
  </div>
  return <Region name="Nodes">
    <p>{changed.length === 0 ? 'No node changes.' : `${changed.length.toLocaleString('en')} of ${count(changes.size, 'node')} change.`}</p>
    <form class="bar" onSubmit={e => { e.preventDefault() }}><label>Colour by <select value={by} onChange={e => { setBy(e.currentTarget.value) }}>
      <option value="fullest">Fullest resource</option>{names.map(r => <option value={r}>{resourceName(r)}</option>)}
    </select></label></form>
    <div class="pair">{map('Before', 'before')}{map('After', 'after')}</div>
    <Scale />
    {changed.length > 0 && <>
      <ul class="causes" aria-label="Changes">{kinds.map(k => ({ ...k, n: changed.filter(c => kindOf(c) === k).length })).filter(k => k.n > 0).map(k => <li><span class="swatch key" aria-hidden="true">{k.sign}</span> <span class="words">{count(k.n, 'node')}: {k.text}</span></li>)}</ul>
      <p class="quiet">In small cells a dot stands for the sign. The map is enlarged with +.</p>
      <details open={rows.length <= mostOpen}><summary>Nodes that change</summary>
      <Table name="Nodes that change" columns={['Node', 'Zone', 'Change', 'CPU', 'Memory', 'Pods']} list={rows} of="node" row={c => [c.before ? nodeLink(nameOf(c)) : <bdi>{nameOf(c)}</bdi>, <bdi>{(c.before ?? c.after)!.zone}</bdi>, words(c),
        both(c, n => `${at(n, 'cpu')}%`), both(c, n => `${at(n, 'memory')}%`), both(c, n => String(pods(n)))]} />
      </details>
    </>}
  </Region>
}
