// Numbers and times as people read them.
import { now } from './data'

export const count = (n: number, one: string, many = one + 's'): string => `${n.toLocaleString('en')} ${n === 1 ? one : many}`

export function span(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000))
  if (s < 120) return `${s} s`
  if (s < 7200) return `${Math.round(s / 60)} min`
  if (s < 172800) return `${Math.round(s / 3600)} h`
  return `${Math.round(s / 86400)} days`
}

export const ago = (time: string): string => span(now() - Date.parse(time))
export const until = (time: string): string => span(Date.parse(time) - now())
export const clock = (time: string): string => time.replace('T', ' ').replace(/(\.\d{3})\d*Z$/, '$1Z').replace(/Z$/, ' UTC')

// plain is a text in which nothing turns what follows it around.
export const plain = (text: string): string => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, c => '\\u' + c.charCodeAt(0).toString(16))

const units = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi']

// amount is a quantity of a resource, as the daemon has it: CPU in thousandths, memory in bytes.
export function amount(resource: string, n: number): string {
  if (resource === 'cpu') return n % 1000 === 0 || Math.abs(n) >= 10000 ? String(Math.round(n / 1000)) : `${n}m`
  if (resource !== 'memory' && resource !== 'ephemeral-storage' && !resource.startsWith('hugepages-')) return n.toLocaleString('en')
  let of = n, u = 0
  while (Math.abs(of) >= 1024 && u < units.length - 1) { of /= 1024; u++ }
  return `${of >= 100 || Number.isInteger(of) ? Math.round(of) : of.toFixed(1)}${units[u]}`
}

export const resourceName = (r: string): string => ({ cpu: 'CPU', memory: 'Memory', pods: 'Pods', 'ephemeral-storage': 'Ephemeral storage' })[r] ?? r
export const percent = (part: number, of: number): number => of > 0 ? Math.round(100 * part / of) : 0

// moves says of the scheduler's own events why a pod was moved in the queue.
const moves: Record<string, string> = {
  ScheduleAttemptFailure: 'after its attempt failed', BackoffComplete: 'as its backoff is over', PopFromBackoffQ: 'as no other pod was active', ForceActivate: 'as a plugin asked for it',
  UnschedulableTimeout: 'as it waited long enough', Reconfigured: 'as the configuration changed', SkipBackoff: 'without backoff',
}
const things: Record<string, string> = { AssignedPod: 'a pod with a node', UnscheduledPod: 'a pod that waits', TargetPod: 'the pod itself', '*': 'something' }

// eventText says what happened, of an event by the scheduler's name, such as AssignedPodDelete.
function eventText(event: string): string {
  if (moves[event]) return moves[event]
  const [, thing, action, of] = /^(.+?)(Add|Delete|Update|All)([A-Z]\w*)?$/.exec(event) ?? []
  if (thing === undefined) return 'by ' + event
  const what = things[thing] ?? (thing === 'Node' ? 'a node' : thing === 'Namespace' ? 'a namespace' : 'a ' + thing)
  if (action === 'Add') return `as ${what} came`
  if (action === 'Delete') return `as ${what} went`
  return `as ${what} changed${of ? ` (${of.replace(/^(Node|Pod)(?=[A-Z])/, '').replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()})` : ''}`
}

function movedText(r: import('./api').RecordOf): string {
  if (r.to === 'in flight') return 'taken for an attempt'
  if (!r.to || r.to === 'nowhere') return 'left the queue'
  const from = !r.from || r.from === 'nowhere' ? 'new' : r.from
  return `${from} → ${r.to}${r.event ? ' ' + eventText(r.event) : ''}`
}

// recordText says what happened, in one line.
export function recordText(r: import('./api').RecordOf): string {
  switch (r.type) {
    case 'Attempt': {
      const nodes = r.nodesTotal !== undefined ? `, ${r.nodesFeasible ?? 0} of ${r.nodesTotal} nodes feasible` : ''
      if (r.result === 'Scheduled' || r.result === 'Waiting') return `attempt ${r.attempt ?? 1}: ${r.result.toLowerCase()} on ${r.node}${nodes}`
      const victims = r.victims?.length ? `, evicts ${r.victims.join(', ')} from ${r.nominatedNode}` : ''
      return `attempt ${r.attempt ?? 1}: ${(r.result ?? '').toLowerCase()}${victims}${r.message ? ': ' + r.message : nodes}`
    }
    case 'Moved': return movedText(r) + (r.plugin ? ', gated by ' + r.plugin : '') + (r.message ? ': ' + r.message : '')
    case 'Bound': return 'bound'
    case 'BindingUnknown': return `the reply to the binding was lost${r.message ? ': ' + r.message : ''}`
  }
  return r.type
}
