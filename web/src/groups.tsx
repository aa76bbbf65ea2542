// Pod groups: which wait, how far each is, and where it comes nearest to its minimum.
import { h, Fragment } from 'preact'
import type { Group, GroupAnswer, GroupList } from './api'
import { isStill } from './data'
import { nodeLink, podLink, Region, Shown, Table, useAnswer } from './parts'
import { ago, clock, count, recordText, until } from './text'

export function GroupsView() {
  const answer = useAnswer<GroupList>('groups', {}, isStill() ? 0 : 5)
  return <Shown answer={answer} what="the groups">{list => list.groups.length === 0
    ? <p>{list.off ? 'Pods are scheduled one by one: the feature gate GenericWorkload is off.' : 'There is no pod group.'}</p>
    : <>
      <Table name="Groups" columns={['Group', 'Minimum', 'Bound', 'Assumed', 'Waiting', 'Waits for', 'Place', 'Message']} rows={list.groups.map(g => [
        groupLink(g.group), g.minimum, g.bound, g.assumed, g.waiting, g.since ? ago(g.since) : '', g.place ?? '', <span class="words">{stateText(g)}</span>])} />
      {list.total > list.groups.length && <p>{count(list.total - list.groups.length, 'more group')}.</p>}
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
    <Region name="Members"><Table name="Members" columns={['Pod', 'Place', 'Node', 'Attempts', 'Message']} rows={g.members.map(m => [
      podLink(m.pod), m.place, m.node ? nodeLink(m.node) : '', m.attempts ?? '', <span class="words">{m.message}</span>])} /></Region>
  </>}</Shown>
}

function NearestOf({ of: g }: { of: GroupAnswer }) {
  if (!g.nearest) return <p>{g.unknown ? `It is not known: ${g.unknown}` : 'No placement was found.'}</p>
  const n = g.nearest
  return <p>{n.placement ? <bdi>{n.placement}</bdi> : 'All nodes'} ({count(n.nodes, 'node')}{(g.placements ?? 1) > 1 ? `, the nearest of ${g.placements} placements` : ''}): has room for {n.has} of {n.needs}{n.feasible ? ', so the group fits now' : ''}. <span class="words">{n.message}</span></p>
}
