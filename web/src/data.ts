// What the page knows of the cluster, and where it has it from: answers that it asks for, and one
// stream that all tabs of a browser share.
import { signal } from '@preact/signals'
import type { Capabilities, Counts, NodeTable, PendingList, Problem, RecordList, RecordOf, Taint } from './api'

const prefix = 'berth/v1/'

// Refused is the error of a question that was not answered.
export class Refused extends Error {
  constructor(readonly problem: Problem) { super(problem.message) }
}

// exported are the answers that a page of one file holds; undefined: the page has a server.
interface Exported { route: string; redacted?: boolean; answers: Record<string, unknown>; about: Record<string, Record<string, unknown>> | null }
const held = document.getElementById('exported')?.textContent
export const exported = held ? JSON.parse(held) as Exported : undefined

// heldOf returns what a page of one file holds of an answer.
function heldOf(e: Exported, what: string, query: Record<string, string>): unknown {
  const answer = e.answers[query['place'] === 'other scheduler' ? 'others' : what], name = query['pod'] ?? query['name'] ?? ''
  if (what === 'why' || what === 'node' || what === 'group') {
    const about = e.about?.[what]
    return about && Object.hasOwn(about, name) ? about[name] : undefined
  }
  if (what === 'records' && answer) return { ...answer, records: (answer as RecordList).records.filter(r => name === '' || r.pod === name).slice(-Number(query['limit'])) }
  if (what !== 'pending' || !answer) return answer
  const places = query['place'] ? query['place'].split(',') : undefined, reason = (query['reason'] ?? '').toLowerCase()
  const list = (answer as PendingList).pods.filter(p => (places?.includes(p.place) ?? true) && p.pod.startsWith(query['namespace'] ? query['namespace'] + '/' : '') && (!query['workload'] || p.workload === query['workload'])
    && [p.message ?? '', ...p.rejectedBy ?? [], ...p.pendingBy ?? [], p.failedBy ?? ''].some(text => [text, text.replace(/"[^"]*"/g, '"..."')].some(t => t.toLowerCase().includes(reason))))
  return { ...answer, pods: list.slice(0, Number(query['limit'])), total: list.length }
}

async function answerOf(reply: Response): Promise<unknown> {
  if (reply.ok) return reply.json()
  let problem: Problem = { code: reply.status, reason: reply.statusText, message: `the page's server answers ${reply.status}` }
  try {
    problem = { ...problem, ...await reply.json() as Problem }
  } catch { /* it is no Problem */ }
  throw new Refused(problem)
}

async function request(what: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(prefix + what, init)
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new Refused({ code: 0, reason: 'Unreachable', message: '"berth view" does not answer any more. Start it again, and open the address that it prints.' })
  }
}

// at is the time of the record that is shown, "" for its end and for what is no record.
export const at = signal('')
// timeless are the questions whose answer is the same at each time.
export const timeless = ['replay', 'compare']

export async function ask<T>(what: string, query: Record<string, string> = {}, stop?: AbortSignal): Promise<T> {
  if (exported) {
    const answer = heldOf(exported, what, query)
    if (answer === undefined) throw new Refused({ code: 404, reason: 'NotExported', message: 'This file does not hold that: it is a page that was written for others, without the scheduler.' })
    return answer as T
  }
  const parameters = new URLSearchParams(Object.entries({ ...query, at: timeless.includes(what) ? '' : at.peek() }).filter(([, value]) => value !== '')).toString()
  return await answerOf(await request(what + (parameters && '?' + parameters), { signal: stop })) as T
}

export async function post<T>(what: string, question: unknown, stop?: AbortSignal): Promise<T> {
  return await answerOf(await request(what, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(question), signal: stop })) as T
}

// now is the time of the cluster. That of files stands still.
let skew = 0
let still: number | undefined
export const now = (): number => still ?? Date.now() + skew
function setTime(time: string) { if (!Number.isNaN(Date.parse(time))) skew = Date.parse(time) - Date.now() }
const clusterTime = (browser: number): string => new Date(browser + skew).toISOString()

// moveTo shows another time of the record.
export function moveTo(time: string) {
  still = Date.parse(time)
  if (at.value === time || exported) return
  at.value = time
  process = ''
  counts.value = undefined
  decided.value = []
  waiting = []
  void (loading ?? Promise.resolve()).then(loadNodes)
}

export const capabilities = signal<Capabilities | undefined>(undefined)
export const isStill = (): boolean => still !== undefined

// Node is a node as the map has it. Amounts are in the order of resources.
export interface Node {
  name: string; ready: boolean; cordoned: boolean; cordonedSince?: string; zone: string; taints: string
  labels: Record<string, string>; allocatable: number[]; requested: number[]
}

export const nodes = new Map<string, Node>()
export const resources: string[] = []
// nodesChanged is another number after each change of nodes; 0 before there are any.
export const nodesChanged = signal(0)
export const counts = signal<Counts | undefined>(undefined)
export const nodesProblem = signal<Problem | undefined>(undefined)

export interface Connection { state: 'live' | 'reconnecting' | 'stale' | 'notLeading'; since?: string; problem?: Problem }
export const connection = signal<Connection>({ state: 'reconnecting' })

// decided are the newest records, the newest first.
export const mostDecided = 500
export const decided = signal<{ key: number; record: RecordOf }[]>([])
export const lost = signal(0)
// resumed is another number each time the stream goes on after a break: what came meanwhile may be missing.
export const resumed = signal(0)

// poolLabels are labels that say to which pool a node belongs, and instance what machine it is.
export const poolLabels = ['karpenter.sh/nodepool', 'cloud.google.com/gke-nodepool', 'eks.amazonaws.com/nodegroup', 'kubernetes.azure.com/agentpool', 'pool']
export const instanceLabel = 'node.kubernetes.io/instance-type'

const taintText = (list: Taint[]): string => list.map(t => t.key + (t.value ? '=' + t.value : '') + ':' + t.effect).join(', ')

let process = ''
let revision = 0

// take takes in a table: all nodes, or those that changed.
function take(t: NodeTable, whole: boolean) {
  const [of, number] = t.revision.split('-')
  const newer = Number(number)
  if (of === process && (whole ? newer < revision : newer <= revision)) return
  if (of !== process && !whole) { void loadNodes(); return }
  process = of
  revision = newer
  for (const name of Object.keys(t.resources)) if (!resources.includes(name)) resources.push(name)
  const taints = t.taints.values.map(taintText)
  const before = whole ? new Map(nodes) : nodes
  if (whole) nodes.clear()
  t.names.forEach((name, i) => {
    const labels: Record<string, string> = { ...before.get(name)?.labels }
    for (const [key, column] of Object.entries(t.labels ?? {})) if (column.of[i] >= 0) labels[key] = column.values[column.of[i]]
    nodes.set(name, {
      name, ready: t.ready[i], cordoned: t.cordoned[i], cordonedSince: t.cordonedSince?.[name], labels,
      zone: t.zones.of[i] < 0 ? '' : t.zones.values[t.zones.of[i]], taints: t.taints.of[i] < 0 ? '' : taints[t.taints.of[i]],
      allocatable: resources.map(r => t.resources[r]?.allocatable[i] ?? 0), requested: resources.map(r => t.resources[r]?.requested[i] ?? 0),
    })
  })
  for (const name of t.gone ?? []) nodes.delete(name)
  nodesChanged.value++
}

let loading: Promise<void> | undefined
export function loadNodes(): Promise<void> {
  loading ??= (async () => {
    try {
      const table = await ask<NodeTable>('nodes', { labels: [...poolLabels, instanceLabel].join(',') })
      if (still === undefined) setTime(table.time)
      take(table, true)
      nodesProblem.value = undefined
    } catch (error) {
      nodesProblem.value = (error as Refused).problem
    } finally {
      loading = undefined
    }
  })()
  return loading
}

interface Message { kind: string; data: string }

let waiting: { key: number; record: RecordOf }[] = []
let key = 0

// flush shows the records that came, four times a second at most.
function flush() {
  const came = waiting.reverse()
  waiting = []
  decided.value = [...came, ...decided.value].slice(0, mostDecided)
}

function keep(record: RecordOf) {
  if (waiting.length === 0) setTimeout(flush, 250)
  waiting.push({ key: ++key, record })
  if (waiting.length > mostDecided) waiting.shift()
}

// heard is when the stream that broke last was heard last, "" if that is not known.
let heard = ''

function connected(c: Connection) {
  if (c.state === 'live' && connection.value.state !== 'live') resumed.value++
  if (c.state !== 'live') heard = c.since ?? ''
  connection.value = c
}

const hostOf = (identity: string): string => identity.replace(/_[^_]*$/, '')

// anotherProcess marks where the records of another process begin: of one on the same host since it started, of
// another since the last one was heard no more.
function anotherProcess(leader = '', started = '') {
  const restarted = leader !== '' && hostOf(leader) === hostOf(capabilities.value?.identity ?? '')
  keep({ time: (restarted ? started : heard) || clusterTime(Date.now()), type: 'Process', pod: '', message: restarted ? 'The scheduler restarted' : leader ? leader + ' leads' : 'Another scheduler leads, or this one restarted' })
  ask<Capabilities>('capabilities').then(of => { capabilities.value = of }, () => { /* what was known stays */ })
}

interface Lost { lost: number; restarted?: boolean; leader?: string; started?: string }

function handle(m: Message) {
  switch (m.kind) {
    case 'nodes': { const t = JSON.parse(m.data) as NodeTable; take(t, t.whole === true); break }
    case 'counts': counts.value = JSON.parse(m.data) as Counts; break
    case 'record': keep(JSON.parse(m.data) as RecordOf); break
    case 'lost': { const l = JSON.parse(m.data) as Lost; if (l.restarted) anotherProcess(l.leader, l.started); lost.value += l.lost; break }
    case 'connection': connected(JSON.parse(m.data) as Connection); break
    case 'broken': if (connection.value.state === 'live') connected({ state: 'stale', since: clusterTime(Date.now()) }); break
    case 'open': void loadNodes(); break
  }
}

const kinds = ['nodes', 'counts', 'record', 'lost', 'connection']

// inClusterTime returns the data of an event in the time of the cluster: since when nothing came, the page's
// server says by the clock of this machine.
function inClusterTime(kind: string, data: string): string {
  const of = kind === 'connection' ? JSON.parse(data) as Connection : undefined
  return of?.since ? JSON.stringify({ ...of, since: clusterTime(Date.parse(of.since)) }) : data
}

// connect reads the stream in one tab of the browser, which tells the others.
function connect() {
  const others = new BroadcastChannel('berth')
  let leads = false
  others.onmessage = (e: MessageEvent<Message>) => {
    if (e.data.kind !== 'hello') handle(e.data)
    else if (leads) others.postMessage({ kind: 'connection', data: JSON.stringify(connection.value) })
  }
  others.postMessage({ kind: 'hello', data: '' })
  const tell = (kind: string, data: string) => { handle({ kind, data }); others.postMessage({ kind, data }) }
  const open = () => {
    const stream = new EventSource(prefix + 'watch')
    for (const kind of kinds) stream.addEventListener(kind, e => { tell(kind, inClusterTime(kind, (e as MessageEvent<string>).data)) })
    stream.onopen = () => { tell('open', '') }
    stream.onerror = () => {
      tell('broken', '')
      if (stream.readyState === EventSource.CLOSED) setTimeout(open, 5000)
    }
  }
  void navigator.locks.request('berth-stream', () => new Promise<void>(() => { leads = true; open() }))
}

// begin asks for what all views need; asked is the time of a record that the address has.
export async function begin(asked: string) {
  if (exported && !exported.answers['capabilities']) { // of a command: there is no more than its answer
    connection.value = { state: 'live' }
    return
  }
  try {
    const of = await ask<Capabilities>('capabilities')
    setTime(of.time)
    if (exported || of.identity === 'files' || of.identity === 'record') still = Date.parse(of.time)
    capabilities.value = of
    if (of.identity === 'record' && !Number.isNaN(Date.parse(asked))) moveTo(new Date(asked).toISOString())
  } catch (error) {
    nodesProblem.value = (error as Refused).problem
  }
  void loadNodes()
  if (exported) connection.value = { state: 'live' }
  else connect()
}
