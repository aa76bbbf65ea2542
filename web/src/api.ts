// What the daemon and the commands answer, as far as the page reads it. docs/records.md describes
// the daemon's answers.

export interface Problem { code: number; reason: string; message: string; leader?: string }

export interface Values<T> { values: T[]; of: number[] }
export interface Taint { key: string; value?: string; effect: string }
export interface Amounts { allocatable: number[]; requested: number[] }
export interface NodeTable {
  revision: string; time: string; names: string[]; ready: boolean[]; cordoned: boolean[]; cordonedSince?: Record<string, string>
  zones: Values<string>; taints: Values<Taint[]>; labels?: Record<string, Values<string>>
  resources: Record<string, Amounts>; whole?: boolean; gone?: string[]
}

export interface Queue { active: number; backoff: number; errorBackoff: number; unschedulable: number; gated: number; inFlight: number }
export interface Counts { queue: Queue; nodes: number; pods: number; assumed: number }
export interface Rates {
  seconds: number; attempts: Record<string, number>; bound: number; evicted: number
  binding: { pods: number; p50: number; p99: number }
  preemptions?: { for: string; node: string; evicted: number; victims: string[] }[]
}
export interface Blocking { plugin: string; reason: string; pods: number; workloads?: { name: string; pods: number }[] }
export interface Others { pods: number; more?: boolean; schedulers: { name: string; pods: number }[]; names: number; profiles: string[] }
export interface Summary extends Counts {
  time: string; leader?: string; shadow?: boolean; hosted?: boolean; oldest?: string; rates: Rates; blocking: Blocking[]; otherSchedulers?: Others
  lastDecision?: RecordOf; refused?: { time: string; reason?: string }; log: { oldest?: string }
}
export interface Capabilities { time: string; version: string; kubernetes: string; identity: string; leads: boolean; leader?: string; paths: string[]; shadow?: boolean; hosted?: string[]; recordsSince?: string }
export interface History { times: string[]; attempts: Record<string, number[]>; bound: number[]; evicted: number[]; queue: Record<string, number[]>; every: number; binding?: { pods: number[] | null; p50: number[] | null } }

export interface RecordOf {
  time: string; type: string; pod: string; from?: string; to?: string; event?: string; until?: string; plugin?: string
  attempt?: number; result?: string; score?: number; ties?: number; nodesTotal?: number; nodesFeasible?: number; node?: string; for?: string
  message?: string; victims?: string[]; nominatedNode?: string; blockers?: (Blocker & { nodes: number })[]
}
export interface RecordList { records: RecordOf[]; more: boolean; log: { oldest?: string } }
export interface Found { pods: string[]; nodes: string[]; more: boolean }
export interface PendingPod { pod: string; workload?: string; place: string; since: string; created?: string; until?: string; attempts: number; rejectedBy?: string[]; pendingBy?: string[]; failedBy?: string; nominatedNode?: string; message?: string }
export interface PendingList { pods: PendingPod[]; total: number }

export interface NodePod { pod: string; priority: number; requested: Record<string, number>; share: number; created?: string; assumed?: boolean; terminating?: boolean }
export interface NodeOf {
  time: string; name: string; ready: boolean; cordoned: boolean; labels?: Record<string, string>
  taints?: (Taint & { timeAdded?: string })[]; resources: Record<string, { allocatable: number; requested: number }>
  pods: NodePod[]; nominated?: string[]; records: RecordOf[]
}

export interface Blocker { plugin: string; code: string; reasons: string[]; text?: string; topologyKeys?: string[] }
export interface Fix { summary: string; then: { node: string; evicts?: string[] }; commands?: string[]; first?: string[]; undoesRollout?: boolean }
export interface Why {
  pod: string; profile: string; verdict: string; sentence?: string; message: string; node: string; notRunning?: string; stalled?: string; podGroup?: string
  observed?: { from: string; time?: string; reason: string; message: string; agrees: boolean }
  refusal?: { times: number; more?: boolean; since: string; last: string; message: string }
  rollout?: { text?: string }
  nodesTotal: number; nodesFeasible: number
  groups: { nodes: number; examples: string[]; blockers: Blocker[] }[]
  leaving?: { pod: string; node: string; text?: string }[]
  holders?: { workload: string; resource: string; amount: string; pods: number }[]
  fixes: Fix[]; cut?: string
  events: { resource: string; action: string; plugin: string; text: string }[]
  queue?: { place: string; since: string; until?: string; attempts: number; position?: number; alike?: number; history?: RecordOf[] }
  scores: { node: string; score: number; margin: number; scores: { plugin: string; score: number; weight: number }[] }[]
  victims?: string[]; against?: string[]; first?: string[]; evictedBy?: string[]; evicted?: string
  since?: { what: string; since?: string; by?: string }[]
}

// NodeBlockers has the blockers of each node by its index, -1 where the pod fits.
export interface NodeBlockers { time: string; pod: string; node?: string; message?: string; names: string[]; blockers: Values<Blocker[]> }

export interface NodeColumns { names: string[]; ready: boolean[]; cordoned: boolean[]; zones: string[]; resources: Record<string, Amounts> }
export interface WhatIf {
  nodes?: { before: NodeColumns; after: NodeColumns }
  changes: string[]
  moved: { pod: string; from: string; to: string | null; workload?: string }[]
  placements: Record<string, string>; unplaced: Record<string, string>
  kept: { pod: string; node: string; why: string; budgets?: Budget[] }[]; gone: { pod: string; node: string; why: string }[]
  stayed: { pod: string; node: string; why: string }[]; evicted: { pod: string; node: string; for: string }[]
  budgets: Budget[]
  resources: { before: Record<string, Room>; after: Record<string, Room> }
  cut?: string
}
export interface Budget { budget: string; allowed: number; down: number; broken: boolean }
export interface Room { allocatable: number; requested: number; free: number }

export interface Group {
  group: string; missing?: boolean; minimum: number; gang: boolean; priority: number; topology?: string
  pods: number; bound: number; assumed: number; waiting: number; since?: string; place?: string; until?: string
  status?: string; reason?: string; message?: string
}
export interface GroupList { groups: Group[]; total: number; off?: boolean }
export interface GroupAnswer extends Group {
  members: { pod: string; node?: string; place: string; since?: string; attempts?: number; message?: string }[]
  last?: RecordOf; placements?: number; unknown?: string
  nearest?: { placement?: string; nodes: number; has: number; needs: number; feasible: boolean; message?: string }
}

export interface Quota {
  quota: string; parent?: string; waiting: number; faults?: string[]
  resources: { name: string; used: number; min?: number; max?: number; borrows?: number; lends?: number }[]
}
export interface QuotaList { quotas: Quota[]; total: number }

export interface Difference {
  time: string; pod: string; node: string; result: string; plugin?: string; berthNode?: string; ties?: number; bestScore?: number; score?: number
  scores?: { plugin: string; weight: number; node: number; best: number }[]; reasons?: string[]; nodesFeasible: number; nodesTotal: number
}
export interface ShadowAnswer { choices: { result: string; plugin?: string; profile: string; pods: number }[]; placeable: number; differences?: Difference[] }

export interface Sample { time: string; pending: number; placed: number; cpu: number; memory: number; stranded: number; empty: number }
export interface Day {
  name: string; arrived: number; placed: number; pending: number; left: number; decisions: number; preemptions: number
  waitP50: number; waitP90: number; waitP99: number; waitMax: number
  cpu: number; memory: number; stranded: number; empty: number; emptyAtEnd: number; samples: Sample[]
}
export interface Move { pod: string; a: string; b: string }
export interface Replayed { notes?: string[]; from: string; to: string; replayed: Day; same: number; elsewhere: Move[]; decisions: string[]; redacted?: boolean; cut?: string }
export interface Compared {
  notes?: string[]; from: string; to: string; a: Day; b: Day; same: number; elsewhere: Move[]; onlyA: Move[]; onlyB: Move[]
  evictedA: string[]; evictedB: string[]; emptyA: string[]; emptyB: string[]
  workloads: { workload: string; pods: number; elsewhere: number; verdict: string; because?: string }[]
}
