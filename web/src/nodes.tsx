// The nodes: the map, the same as a table, and one node.
import { h, Fragment } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { Blocking, NodeOf, Summary } from './api'
import { instanceLabel, type Node, nodes, nodesChanged, nodesProblem, loadNodes, poolLabels, resources } from './data'
import { Loading, mostRows, nodeLink, podLink, Pods, Records, Region, Shown, Table, Trouble, useAnswer } from './parts'
import { amount, ago, clock, count, percent, plain, resourceName } from './text'
import { answersWhy, WhyMap } from './fits'
import { type Group, NodeMap } from './map'
import { go } from './route'

export const state = (n: Node): string => !n.ready ? 'not ready' : n.cordoned ? 'cordoned' : 'ready'

const index = (resource: string) => resources.indexOf(resource)
export const share = (n: Node, resource: string): number => {
  const i = index(resource)
  return n.allocatable[i] > 0 ? n.requested[i] / n.allocatable[i] : 0
}

// describe is a node in words, as the contract of the page has them.
export function describe(n: Node): string {
  const i = index('pods')
  const part = (r: string) => percent(n.requested[index(r)], n.allocatable[index(r)])
  return `${n.name}, zone ${plain(n.zone) || 'none'}, ${state(n)}, CPU ${part('cpu')}%, memory ${part('memory')}%, pods ${n.requested[i] ?? 0} of ${n.allocatable[i] ?? 0}${n.taints ? ', taints ' + plain(n.taints) : ''}`
}

// fullest is the part of the resource that a node has least of.
const fullest = (n: Node): number => Math.max(...['cpu', 'memory', 'pods'].map(r => share(n, r)))
// uneven is how far CPU and memory are apart: what is left of one is of no use without the other.
const uneven = (n: Node): number => Math.abs(share(n, 'cpu') - share(n, 'memory'))

const pool = (n: Node): string => poolLabels.map(l => n.labels[l]).find(v => v !== undefined) ?? ''
const groupings: Record<string, (n: Node) => string> = {
  zone: n => n.zone ? 'zone ' + n.zone : 'no zone', pool: n => pool(n) ? 'pool ' + pool(n) : 'no pool',
  instance: n => n.labels[instanceLabel] ?? 'no instance type', state, none: () => 'all nodes',
}

export function groupsOf(list: Node[], by: string, other?: (n: Node) => string): Group[] {
  const groups = new Map<string, Node[]>(), key = other ?? groupings[by] ?? groupings.zone
  for (const n of list) {
    const name = key(n), of = groups.get(name)
    if (of) of.push(n)
    else groups.set(name, [n])
  }
  return [...groups].sort(([a], [b]) => a < b ? -1 : 1).map(([name, of]) => ({ name, nodes: of.sort((a, b) => a.name < b.name ? -1 : 1) }))
}

export const openNode = (n: Node) => { go('#/node/' + encodeURIComponent(n.name)) }

// Scale says what the colours of amounts and states mean.
export const Scale = () => <p class="legend"><span><span class="swatch scale" /> empty to full</span> <span><span class="swatch cordoned" /> cordoned</span> <span><span class="swatch unready" /> not ready</span></p>

// lacked is the resource that is the most frequent cause, undefined where another cause is.
function lacked(list: Blocking[] | undefined): string | undefined {
  const cause = list?.[0]
  const name = cause?.plugin !== 'NodeResourcesFit' ? undefined : cause.reason === 'Too many pods' ? 'pods' : /^Insufficient (\S+)$/.exec(cause.reason)?.[1]
  return name !== undefined && resources.includes(name) ? name : undefined
}

const usual = ['cpu', 'memory', 'pods']

export function Nodes({ query }: { query: URLSearchParams }) {
  const summary = useAnswer<Summary>('summary', {})
  const changed = nodesChanged.value, lack = query.get('by') ? undefined : lacked(summary.data?.blocking)
  const by = query.get('by') ?? lack ?? 'cpu', group = query.get('group') ?? 'zone', q = query.get('q') ?? ''
  const [table, setTable] = useState(false)
  const list = useMemo(() => [...nodes.values()].filter(n => q === '' || n.name.includes(q) || n.zone === q || n.taints.includes(q) || q === state(n) || q === 'cordoned' && n.cordoned), [changed, q])
  const groups = useMemo(() => groupsOf(list, group), [list, group])
  if (changed === 0) return nodesProblem.value ? <Trouble problem={nodesProblem.value} again={() => { void loadNodes() }} /> : <Loading what="the nodes" />
  if (nodes.size === 0) return <p>There is no node. Nodes come here when their kubelets join the cluster.</p>
  const set = (name: string, value: string) => {
    const next = new URLSearchParams(query)
    next.set(name, value)
    if (next.get('by') !== 'why') {
      next.delete('pod')
      if (next.get('group') === 'why') next.delete('group')
    }
    go('#/nodes?' + next.toString(), true)
  }
  const other = resources.includes(by) && !usual.includes(by) ? by : undefined
  const part = by === 'room' ? fullest : by === 'fragmentation' ? uneven : (n: Node) => share(n, by)
  return <>
    {nodesProblem.value && <Trouble problem={nodesProblem.value} again={() => { void loadNodes() }} />}
    <form class="bar" onSubmit={e => { e.preventDefault() }}>
      <label>Colour by <select value={by} onChange={e => { set('by', e.currentTarget.value) }}>
        {resources.map(r => <option value={r}>{resourceName(r)}</option>)}
        <option value="room">Fullest of CPU, memory and pods</option>
        <option value="fragmentation">Fragmentation: CPU beside memory</option>
        {(answersWhy() || by === 'why') && <option value="why">Why a pod does not fit</option>}
      </select></label>
      <label>Group by <select value={group} onChange={e => { set('group', e.currentTarget.value) }}>
        <option value="zone">Zone</option><option value="pool">Pool</option><option value="instance">Instance type</option><option value="state">State</option><option value="none">Nothing</option>
        {by === 'why' && <option value="why">Why the pod does not fit</option>}
      </select></label>
      <label>Only nodes with <input value={q} size={28} placeholder="part of name, zone, taint, state" onInput={e => { set('q', e.currentTarget.value) }} /></label>
      <button type="button" aria-pressed={table} onClick={() => { setTable(!table) }}>Show as table</button>
    </form>
    <p role="status" aria-label="Map">{count(list.length, 'node')} shown</p>
    <Cordoned list={list} />
    {lack && <p class="quiet">The colours begin with {resourceName(lack)}: it is what pods that wait lack most often.</p>}
    {by === 'why' ? <WhyMap pod={query.get('pod') ?? ''} choose={pod => { set('pod', pod) }} list={list} group={group} table={table} changed={changed} /> : <>
      {table ? <NodeTable list={list} more={other ? { name: resourceName(other), of: n => partOf(n, other) } : undefined} /> : <NodeMap groups={groups} part={part} describe={describe} changed={changed} open={openNode} />}
      {!table && <Scale />}
      <Region name="Groups of nodes"><GroupTable groups={groups} other={other} /></Region>
    </>}
  </>
}

const hint = ': say which with "Only nodes with"'

const partOf = (n: Node, r: string) => `${percent(n.requested[index(r)], n.allocatable[index(r)])}% of ${amount(r, n.allocatable[index(r)])}`

// NodeTable has a column more where there is more to say of each node.
export function NodeTable({ list, more }: { list: Node[]; more?: { name: string; of: (n: Node) => string } }) {
  const sorted = [...list].sort((a, b) => a.name < b.name ? -1 : 1)
  return <Table name="Nodes" columns={['Node', 'Zone', 'State', 'CPU', 'Memory', 'Pods', 'Taints', ...more ? [more.name] : []]} list={sorted} most={2 * mostRows} of="node" hint={hint}
    row={n => [nodeLink(n.name), n.zone, state(n), partOf(n, 'cpu'), partOf(n, 'memory'), `${n.requested[index('pods')]} of ${n.allocatable[index('pods')]}`, <bdi>{n.taints}</bdi>, ...more ? [<span class="words">{more.of(n)}</span>] : []]} />
}

// Cordoned lists the nodes that take no pods, with since when: what is above the map is seen without scrolling.
function Cordoned({ list }: { list: Node[] }) {
  const of = list.filter(n => n.cordoned).sort((a, b) => a.name < b.name ? -1 : 1)
  if (of.length === 0) return <></>
  return <details><summary>{count(of.length, 'node is', 'nodes are')} cordoned</summary>
    <Table name="Cordoned" columns={['Node', 'Zone', 'Since']} list={of} of="node" hint={hint} row={n => [nodeLink(n.name), <bdi>{n.zone}</bdi>, n.cordonedSince ? `${clock(n.cordonedSince)}, for ${ago(n.cordonedSince)}` : 'its taint does not say']} />
  </details>
}

// GroupTable has a column more where the nodes are looked at for another resource. What is free of nodes that
// take no pods is of no use to any: it is not counted.
export function GroupTable({ groups, other }: { groups: Group[]; other?: string }) {
  const usable = (n: Node) => state(n) === 'ready'
  const free = (g: Group, r: string) => {
    const of = g.nodes.filter(usable), i = index(r)
    if (of.length === 0) return 'none'
    const whole = of.reduce((s, n) => s + n.allocatable[i], 0), taken = of.reduce((s, n) => s + n.requested[i], 0)
    return `${r === 'cpu' ? `${((whole - taken) / 1000).toLocaleString('en', { maximumFractionDigits: 1 })} CPUs` : amount(r, whole - taken)} (${100 - percent(taken, whole)}%)`
  }
  return <>
    <Table name="Groups of nodes" columns={['Group', 'Nodes', 'Free CPU', 'Free memory', 'Free pods', ...other ? [`Free ${resourceName(other)}`] : [], 'Cordoned', 'Not ready']}
      list={groups} of="group" row={g => [<bdi>{g.name}</bdi>, g.nodes.length, free(g, 'cpu'), free(g, 'memory'), free(g, 'pods'), ...other ? [free(g, other)] : [], g.nodes.filter(n => n.cordoned).length, g.nodes.filter(n => !n.ready).length]} />
    {groups.some(g => !g.nodes.every(usable)) && <p class="quiet">What is free on nodes that are cordoned or not ready is not counted.</p>}
  </>
}

export function NodeView({ name }: { name: string }) {
  const answer = useAnswer<NodeOf>('node', { name }, 10)
  return <Shown answer={answer} what={'node ' + name}>{n => <>
    <p>{n.ready ? 'Ready' : 'Not ready'}{n.cordoned ? ', cordoned' : ''}, {n.labels?.['topology.kubernetes.io/zone'] ? 'zone ' + n.labels['topology.kubernetes.io/zone'] : 'no zone'}. <a href={'#/what-if?do=' + encodeURIComponent('drain ' + n.name)}>What if it is drained?</a></p>
    <Region name="Resources"><Table name="Resources" columns={['Resource', 'Allocatable', 'Requested', 'Free', 'Used']} list={Object.entries(n.resources)} of="resource" row={([r, a]) => [resourceName(r), amount(r, a.allocatable), amount(r, a.requested), amount(r, a.allocatable - a.requested), percent(a.requested, a.allocatable) + '%']} /></Region>
    <Region name="Taints">{n.taints?.length ? <ul>{n.taints.map(t => <li><bdi>{t.key}{t.value ? '=' + t.value : ''}:{t.effect}</bdi>{t.timeAdded && ` for ${ago(t.timeAdded)}`}</li>)}</ul> : <p>It has none.</p>}</Region>
    <Region name="Pods">{n.pods.length === 0 ? <p>No pod is here.</p> : <Table name="Pods" columns={['Pod', 'Priority', 'CPU', 'Memory', 'Largest part of the node', 'State']} list={n.pods} most={2 * mostRows} of="pod"
      row={p => [podLink(p.pod), p.priority, amount('cpu', p.requested['cpu'] ?? 0), amount('memory', p.requested['memory'] ?? 0), Math.round(100 * p.share) + '%', p.terminating ? 'terminating' : p.assumed ? 'being bound' : '']} />}</Region>
    {n.nominated?.length ? <Region name="Nominated"><p><Pods list={n.nominated} /></p></Region> : null}
    <Region name="Records">{n.records.length ? <Records list={[...n.records].reverse()} pods /> : <p>Nothing is recorded of this node.</p>}</Region>
  </>}</Shown>
}
