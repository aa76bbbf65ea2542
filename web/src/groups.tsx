// Pod groups: which wait, how far each is, and where it comes nearest to its minimum.
import { h, Fragment } from 'preact'
import type { Group, GroupAnswer, GroupList, QuotaList } from './api'
import { isStill } from './data'
import { More, mostRows, nodeLink, Part, podLink, Region, Shown, Table, useAnswer } from './parts'
import { ago, amount, clock, count, recordText, resourceName, until } from './text'

export function GroupsView() {
  return <><PodGroups /><Quotas /></>
}

// mostQuotas is how many rows of resources are shown beside a table of groups.
const mostQuotas = 150

// Quotas shows the ElasticQuotas, where there are any.
const Quotas = () => <Part<QuotaList> name="Quotas" path="quotas" what="the quotas" seconds={5}>{list => list.total === 0 ? <></> : <QuotaTable of={list} />}</Part>

function QuotaTable({ of: { quotas, total } }: { of: QuotaList }) {
  let n = 0
  const shown = quotas.filter(q => (n += Math.max(1, q.resources.length)) <= mostQuotas)
  const rows = shown.flatMap(q => (q.resources.length > 0 ? q.resources : [undefined]).map(r => ({ q, r })))
  const said = (r: string, n?: number) => n ? amount(r, n) : n === 0 ? '0' : ''
  return <Region name="Quotas">
    <p>Each namespace is guaranteed its minimum. It may borrow up to its maximum what others do not use of theirs, and gives it back when they need it.</p>
    <Table name="Quotas" columns={['Quota', 'Part of', 'Resource', 'Used', 'Minimum', 'Maximum', 'Borrows', 'Lends', 'Pods that wait for it']} list={rows} most={rows.length} of="resource" row={({ q, r }) => [
      <><bdi>{q.quota}</bdi>{q.faults?.map(f => <p class="note">{f}</p>)}</>, <bdi>{q.parent}</bdi>,
      ...r ? [resourceName(r.name), <>{said(r.name, r.used)} <Used name={`${resourceName(r.name)} of ${q.quota}`} used={r.used} min={r.min} max={r.max} /></>, said(r.name, r.min), said(r.name, r.max), said(r.name, r.borrows), said(r.name, r.lends)] : ['', '', '', '', '', ''],
      q.waiting > 0 ? <a href={'#/queue?' + new URLSearchParams({ place: '', ns: q.quota.split('/')[0], reason: 'CapacityScheduling' }).toString()}>{q.waiting}</a> : 0]} />
    <More n={total - shown.length} of="quota" />
  </Region>
}

// Used draws what is used as part of the maximum, or of the minimum where there is none.
function Used({ name, used, min, max }: { name: string; used: number; min?: number; max?: number }) {
  const most = max ?? min ?? 0
  return most > 0 ? <meter min={0} max={Math.max(most, used)} value={used} aria-label={name} /> : <></>
}

function PodGroups() {
  const answer = useAnswer<GroupList>('groups', {}, isStill() ? 0 : 5)
  return <Shown answer={answer} what="the groups">{list => list.groups.length === 0
    ? <p>{list.off ? 'Pods are scheduled one by one: the feature gate GenericWorkload is off.' : 'There is no pod group.'}</p>
    : <>
      <Table name="Groups" columns={['Group', 'Minimum', 'Bound', 'Assumed', 'Waiting', 'Waits for', 'Place', 'Message']} list={list.groups} of="group" total={list.total} row={g => [
        groupLink(g.group), g.minimum, g.bound, g.assumed, g.waiting, g.since ? ago(g.since) : '', g.place ?? '', <span class="words">{stateText(g)}</span>]} />
    </>}</Shown>
}

const groupLink = (group: string) => {
  const [namespace, name] = group.split('/')
  return <a href={`#/group/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`}><bdi>{group}</bdi></a>
}

const stateText = (g: Group): string => g.missing ? 'There is no such PodGroup. Its pods wait until it is created.' : g.message ?? ''

export function GroupView({ group }: { group: string }) {
  const answer = useAnswer<GroupAnswer>('group', { name: group }, isStill() ? 0 : 60)
  return <Shown answer={answer} what={'group ' + group}>{g => <>
    <p role="status" aria-label="Group" class="lead">{g.bound + g.assumed} of {count(g.pods, 'pod')} placed, {g.gang ? `at least ${g.minimum} at once` : 'as many as fit'}{g.topology ? `, all in one ${g.topology}` : ''}{g.priority !== 0 ? `, priority ${g.priority}` : ''}.</p>
    {stateText(g) && <p class="words">{stateText(g)}</p>}
    {g.waiting > 0 && g.place && <p>In the queue: {g.place}{g.since ? `, the oldest pod for ${ago(g.since)}` : ''}{g.until ? `, tried again at the latest in ${until(g.until)}` : ''}.</p>}
    {g.waiting > 0 && <Region name="Nearest placement"><NearestOf of={g} /></Region>}
    {g.last && <p>Last attempt ({clock(g.last.time)}): {podLink(g.last.pod)}, <span class="words">{recordText(g.last)}</span></p>}
    <Region name="Members"><Table name="Members" columns={['Pod', 'Place', 'Node', 'Attempts', 'Message']} list={g.members} most={3 * mostRows} of="pod" row={m => [
      podLink(m.pod), m.place, m.node ? nodeLink(m.node) : '', m.attempts ?? '', <span class="words">{m.message}</span>]} /></Region>
  </>}</Shown>
}

function NearestOf({ of: g }: { of: GroupAnswer }) {
  if (!g.nearest) return <p>{g.unknown ? `It is not known: ${g.unknown}` : 'No placement was found.'}</p>
  const n = g.nearest
  return <p>{n.placement ? <bdi>{n.placement}</bdi> : 'All nodes'} ({count(n.nodes, 'node')}{(g.placements ?? 1) > 1 ? `, the nearest of ${g.placements} placements` : ''}): has room for {n.has} of {n.needs}{n.feasible ? ', so the group fits now' : ''}. <span class="words">{n.message}</span></p>
}
