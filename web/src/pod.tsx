// The story of a pod: what was tried, what blocks it, what would help, and what wakes it.
import { h, Fragment } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Problem, RecordList, RecordOf, Why } from './api'
import { decided, isStill } from './data'
import { answersWhy } from './fits'
import { type Answer, CopyButton, Line, Loading, nodeLink, podLink, Pods, Region, Shown, Table, Trouble, useAnswer } from './parts'
import { go } from './route'
import { ago, clock, count, until } from './text'

export function PodView({ pod }: { pod: string }) {
  // A record about the pod asks anew.
  const touched = decided.value.find(d => d.record.pod === pod)?.key ?? 0
  return <Story key={pod} pod={pod} touched={touched} />
}

// leastPause is between two questions why: they cost the scheduler more than others, and a pod may be tried often.
const leastPause = 5000

function Story({ pod, touched }: { pod: string; touched: number }) {
  const why = useAnswer<Why>('why', { pod }, isStill() ? 0 : 30)
  const records = useAnswer<RecordList>('records', { pod, limit: '400' })
  const asked = useRef({ touched, time: Date.now() })
  useEffect(() => {
    if (asked.current.touched === touched) return
    const timer = setTimeout(() => {
      asked.current = { touched, time: Date.now() }
      why.again()
      records.again()
    }, asked.current.time + leastPause - Date.now())
    return () => { clearTimeout(timer) }
  }, [touched])
  if (why.problem && why.data === undefined) return <Unexplained problem={why.problem} again={why.again} pod={pod} records={records} />
  return <Shown answer={why} what={'the story of pod ' + pod}>{w => <>
    <p role="status" aria-label="Verdict" class="lead">{w.verdict}: {refused(w) ? refusalText(refused(w)!) : w.verdict === 'Placed' ? <>on <bdi>{w.node}</bdi>{w.notRunning ? '; ' + w.notRunning : ''}</> : w.sentence || w.message || (w.node ? 'on ' + w.node : 'it can be placed')}</p>
    {refused(w) && w.sentence && <p>By what is known here, without the policies and webhooks of the API server: {w.sentence}</p>}
    {!placed(w) && w.sentence && w.message && <p class="quiet words">kube-scheduler's words: {w.message}</p>}
    {w.node && <p>Node: {nodeLink(w.node)}</p>}
    {w.stalled && <p class="note">{w.stalled}</p>}
    {w.observed && !w.observed.agrees && !refused(w) && <p class="note">The cluster said last{w.observed.time ? ' (' + clock(w.observed.time) + ')' : ''}: {w.observed.message}</p>}
    {w.queue && w.queue.place !== '' && <p>In the queue: {w.queue.place} for {ago(w.queue.since)}, {count(w.queue.attempts, 'attempt')}{w.queue.position ? `, number ${w.queue.position.toLocaleString('en')} in turn` : ''}{w.queue.until ? `, tried again at the latest in ${until(w.queue.until)}` : ''}.{w.queue.alike ? ` ${count(w.queue.alike, 'other pod')} of its workload ${w.queue.alike === 1 ? 'waits' : 'wait'}, too.` : ''}</p>}
    {w.rollout?.text && <p class="note words">{w.rollout.text}.</p>}
    {(!placed(w) || w.fixes.length > 0) && <Fixes why={w} />}
    <Region name="Attempts"><Attempts of={records} attempts={w.queue?.attempts ?? 0} /></Region>
    {(!placed(w) || w.groups.length > 0 || w.since?.length) && <Region name="Blockers">{w.groups.length === 0 ? <p>No node rejects it.</p> : <Table name="Blockers" columns={['Nodes', 'Examples', 'Plugins', 'Reasons']} list={w.groups} of="group"
      row={g => [g.nodes, <>{g.examples.map((n, i) => <>{i > 0 && ', '}{nodeLink(n)}</>)}{g.nodes > g.examples.length && ' …'}</>,
        g.blockers.map(b => b.plugin).join(', '), <span class="words">{g.blockers.map(b => b.text || b.reasons.join(', ')).join('; ')}</span>]} />}
      {answersWhy() && !placed(w) && <p><a class="button" href={'#/nodes?by=why&pod=' + encodeURIComponent(pod)}>Show on the map</a></p>}
      {w.holders?.length ? <p>Most of what it lacks is held by {w.holders.map(x => `${x.workload} (${x.amount}, ${count(x.pods, 'pod')})`).join(', ')}.</p> : null}
      {w.since?.length ? <ul>{held(w.since).map(text => <li>{text}</li>)}</ul> : null}
    </Region>}
    <Scores why={w} records={records.data} />
    {(!placed(w) || w.events.length > 0) && <Region name="Wakes on"><Wakes why={w} /></Region>}
    <Preemption why={w} records={records.data} />
  </>}</Shown>
}

// refused returns how often the binding of a pod was refused that fits by what the scheduler knows.
const refused = (w: Why): Why['refusal'] => ['WouldBePlaced', 'InProgress'].includes(w.verdict) ? w.refusal : undefined

const refusalText = (r: NonNullable<Why['refusal']>) => <>its binding was refused {r.more && 'at least '}{r.times === 1 ? 'once' : `${r.times.toLocaleString('en')} times`}, last {ago(r.last)} ago: <span class="words">{r.message}</span></>

const placed = (w: Why): boolean => w.verdict === 'Placed'

// pluginsOf returns the plugins that wait for each event, by its text.
function pluginsOf(events: Why['events']): Map<string, Set<string>> {
  const by = new Map<string, Set<string>>()
  for (const e of events) by.set(e.text, (by.get(e.text) ?? new Set()).add(e.plugin))
  return by
}

// helps reports whether an event may help a pod that is larger than each node.
const helps = (e: Why['events'][number]): boolean => e.resource === 'Node' && ['Add', 'UpdateNodeAllocatable'].includes(e.action) || e.action === 'UpdatePodScaleDown'

const Events = ({ list }: { list: Why['events'] }) => <ul>{[...pluginsOf(list)].map(([text, plugins]) => <li>{text} <span class="quiet">({[...plugins].join(', ')})</span></li>)}</ul>

// Wakes lists what lets the pod be tried sooner. Where no node is large enough, however empty, what may help comes first.
function Wakes({ why }: { why: Why }) {
  if (why.events.length === 0) return <p>Nothing needs to wake it.</p>
  const tooLarge = why.groups.length > 0 && why.groups.every(g => g.blockers.some(b => b.plugin === 'NodeResourcesFit' && b.code === 'UnschedulableAndUnresolvable')) && why.groups.reduce((n, g) => n + g.nodes, 0) === why.nodesTotal
  const first = why.events.filter(helps)
  if (!tooLarge || first.length === 0) return <><p>Each of these lets it be tried sooner:</p><Events list={why.events} /></>
  return <><p>No node is large enough, however empty. A larger node or a smaller request can help:</p><Events list={first} />
    <details><summary>Other events let it be tried sooner, and do not suffice</summary><Events list={why.events.filter(e => !helps(e))} /></details></>
}

const mostExamples = 3

// held says since when the pod is held by what: in one text what is alike on several nodes.
function held(list: NonNullable<Why['since']>): string[] {
  const by = new Map<string, { what: string; by: string; nodes: string[]; since: string }>()
  for (const x of list) {
    const [, what, node] = /^((?:cordon|taint .*)) of (\S+)$/.exec(x.what) ?? ['', x.what, ''], key = JSON.stringify([what, x.by ?? ''])
    const of = by.get(key) ?? { what, by: x.by ?? '', nodes: [], since: '' }
    if (node !== '') of.nodes.push(node)
    if (x.since && (of.since === '' || Date.parse(x.since) < Date.parse(of.since))) of.since = x.since
    by.set(key, of)
  }
  return [...by.values()].map(x => {
    const on = x.nodes.slice(0, mostExamples).join(', ') + (x.nodes.length > mostExamples ? ' and others' : '')
    return `${x.what}${on && ' of ' + on}${x.since && ` for ${x.nodes.length > 1 ? 'up to ' : ''}${ago(x.since)}`}${x.by && ', by ' + x.by}`
  })
}

// Round is what is recorded of an attempt, and how many before it went alike.
interface Round { records: RecordOf[]; times: number; first: string }

// alike is the same for records that differ in nothing but their time, attempt, node and names.
const alike = (r: RecordOf): string => [r.type, r.result, r.from, r.to, r.event, r.plugin, r.for, ...r.victims ?? [], (r.message ?? '').replace(/"[^"]*"/g, '"..."')].join('|')

// roundsOf returns the attempts of a pod with what follows each, those alike together. The last one may still go on.
function roundsOf(list: RecordOf[]): Round[] {
  const rounds: (Round & { key: string })[] = []
  let round: RecordOf[] = [], attempt: number | undefined
  const end = () => {
    if (round.length === 0) return
    const key = round.map(r => alike(r) + '\n').join(''), before = rounds[rounds.length - 1], first = round[0].time
    if (before?.key.startsWith(key) && attempt !== undefined) {
      before.records = round
      before.times++
    } else rounds.push({ records: round, times: 1, first, key })
    round = []
    attempt = undefined
  }
  for (const r of list) {
    const of = r.type === 'Attempt' ? r.attempt ?? 1 : undefined
    if (r.to === 'in flight' || of !== undefined && attempt !== undefined && of !== attempt) end()
    attempt = of ?? attempt
    round.push(r)
  }
  end()
  return rounds
}

const newest = (list: RecordOf[]) => [...list].reverse().map(r => <Line of={r} pods={false} />)

// Attempts lists what is recorded of the pod.
function Attempts({ of, attempts }: { of: Answer<RecordList>; attempts: number }) {
  return <Shown answer={of} what="the records">{list => <>
    <Earlier list={list} attempts={attempts} />
    {list.records.length > 0 ? <ol class="records">{roundsOf(list.records).reverse().map(r => r.times === 1 ? newest(r.records) : <li>
      <b>{r.times.toLocaleString('en')} times</b>, first <time dateTime={r.first}>{clock(r.first)}</time>, last:
      <ol class="records">{newest(r.records)}</ol>
    </li>)}</ol> : <p>Nothing is recorded of this pod{list.log.oldest ? ` since ${clock(list.log.oldest)}` : ''}.</p>}
  </>}</Shown>
}

// Earlier says that attempts were made that no record shows.
function Earlier({ list, attempts }: { list: RecordList; attempts: number }) {
  const shown = list.records.filter(r => r.type === 'Attempt').length
  if (shown >= attempts || list.more) return list.more ? <p class="note">The newest {list.records.length} records are shown.</p> : <></>
  return <p class="note">{count(attempts - shown, 'earlier attempt')} {attempts - shown === 1 ? 'is' : 'are'} not recorded: {list.log.oldest ? `records begin ${clock(list.log.oldest)}` : 'there is no record yet'}.</p>
}

function Unexplained({ problem, again, pod, records }: { problem: Problem; again: () => void; pod: string; records: Answer<RecordList> }) {
  const list = records.data?.records ?? []
  if (problem.code === 404 && !records.data && !records.problem) return <Loading what={'the records of pod ' + pod} />
  return <>
    {problem.code === 404 && list.length > 0 ? <Gone list={list} /> : <Trouble problem={problem} what={'pod ' + pod} again={again} />}
    {records.problem?.code !== problem.code && <Region name="Attempts"><Attempts of={records} attempts={0} /></Region>}
  </>
}

// Gone says what happened to a pod that there is no more, by its records. They have evictions, but not what ended or
// deleted other pods.
function Gone({ list }: { list: RecordOf[] }) {
  const end = [...list].reverse().find(r => r.type === 'Evicted' || r.type === 'Attempt' || r.type === 'Bound'), last = list[list.length - 1]
  const node = [...list].reverse().find(r => r.node)?.node
  return <p role="status" aria-label="Verdict" class="lead">Gone: {end?.type === 'Evicted'
    ? <>it was evicted from {nodeLink(end.node ?? '')} for {podLink(end.for ?? '')} at <time dateTime={end.time}>{clock(end.time)}</time>.</>
    : <>it ended or was deleted{node && <>, on {nodeLink(node)}</>}. Its last record is of <time dateTime={last.time}>{clock(last.time)}</time>.</>}</p>
}

const mostScores = 20

// Choice says what the record of the attempt that placed the pod keeps of its scores: that of the chosen node.
function Choice({ why, records }: { why: Why; records?: RecordList }) {
  const of = [...records?.records ?? []].reverse().find(r => r.type === 'Attempt' && (r.result === 'Scheduled' || r.result === 'Waiting') && r.node === why.node)
  if (!of) return <p class="note">{records ? 'No record of the decision is kept.' : 'The record of the decision is not known.'}</p>
  const feasible = of.nodesFeasible ?? 0
  return <p class="note">The decision, <time dateTime={of.time}>{clock(of.time)}</time>: {nodeLink(why.node)} {feasible === 1 ? 'was the only feasible node, and needed no score.'
    : <>had {(of.score ?? 0).toLocaleString('en')} points, the most of {count(feasible, 'feasible node')}{(of.ties ?? 0) > 1 && `, as had ${(of.ties ?? 0) === 2 ? 'one other, and a draw decided' : `${((of.ties ?? 0) - 1).toLocaleString('en')} others, and a draw decided`}`}. The scores of the other nodes are not kept.</>}</p>
}

function Scores({ why, records }: { why: Why; records?: RecordList }) {
  const choice = placed(why) && <Choice why={why} records={records} />
  if (why.scores.length === 0) return <Region name="Scores">{choice}<p>{why.nodesFeasible === 0 ? 'No node is feasible, so none was scored.' : why.nodesFeasible === 1 ? 'The only feasible node needs no score.' : 'No node was scored.'}</p></Region>
  const plugins = [...new Set(why.scores.flatMap(s => s.scores.map(p => p.plugin)))]
  return <Region name="Scores">
    {choice}
    <p><b>As of {isStill() ? 'the time that is shown' : 'now'}, not of the {placed(why) ? 'decision' : 'last attempt'}:</b> <span class="quiet">{placed(why) && 'the scores if the pod were placed anew. '}Margin is how many points the node is behind the best.</span></p>
    <Table name="Scores" columns={['Node', 'Total', 'Margin', ...plugins]} list={why.scores} most={mostScores} of="node" hint=" with lower scores" row={s => [<>{nodeLink(s.node)}{s.node === why.node && <b> {placed(why) ? '(the pod is here)' : '(chosen)'}</b>}</>, s.score, s.margin,
      ...plugins.map(p => { const of = s.scores.find(x => x.plugin === p); return of ? <>{of.score}{of.weight !== 1 && ` × ${of.weight}`} <meter min={0} max={100} value={of.score} aria-label={`${p} of ${s.node}`} /></> : '' })]} />
  </Region>
}

// tryable returns the words of what-if for a fix that they can say, "" for others.
function tryable(commands: string[]): string {
  const words = commands.map(c => {
    const uncordon = /^kubectl uncordon (\S+)$/.exec(c), evict = /^kubectl delete pod (\S+) -n (\S+)$/.exec(c)
    if (uncordon) return 'uncordon ' + uncordon[1]
    if (evict) return `evict ${evict[2]}/${evict[1]}`
    return ''
  })
  return words.every(w => w !== '') ? words.join(' , ') : ''
}

function Fixes({ why }: { why: Why }) {
  if (why.fixes.length === 0) return <Region name="Fixes"><p>{why.cut ?? (refused(why) ? 'None is sought, as the API server refuses the binding: no change of the pod or the nodes is known to help. What refuses it is in the message above.' : why.verdict === 'WouldBePlaced' ? 'It fits, so none was sought.' : why.verdict === 'Preempting' ? 'It waits for the pods that leave for it.' : 'No small change was found that places it.')}</p></Region>
  const alike = why.queue?.alike ?? 0
  return <Region name="Fixes">{alike > 0 && <p>What helps was tried for this pod alone: it may not suffice for the {alike === 1 ? 'other pod' : `${alike.toLocaleString('en')} other pods`} of its workload.</p>}{why.fixes.length > 1 && <p>Each of these suffices, as the scheduler's own rules have it; the smallest comes first.</p>}<ul class="fixes">{why.fixes.map(f => {
    const commands = f.commands ?? [], words = tryable(commands)
    return <li>
      <p><span class="words">{f.summary}</span> <span class="quiet">Then it is placed on {f.then.node}{f.then.evicts?.length ? ', and evicts ' + f.then.evicts.join(', ') : ''}.</span></p>
      {commands.length > 0 && <pre tabIndex={0}>{commands.join('\n')}</pre>}
      {commands.some(c => !c.startsWith('#')) && <CopyButton name="Copy command" text={commands.join('\n')} />}
      {words !== '' && <>{' '}<button type="button" onClick={() => { go('#/what-if?do=' + encodeURIComponent(words)) }}>Try in what-if</button></>}
    </li>
  })}</ul>{why.cut && <p class="quiet">{why.cut}</p>}</Region>
}

// Preemption says what the answer says of now, and what the records say of before.
function Preemption({ why, records }: { why: Why; records?: RecordList }) {
  const past = [...records?.records ?? []].reverse().filter(r => r.type === 'Evicted' || r.type === 'Attempt' && r.victims?.length)
  const none = past.length === 0 && !why.victims?.length && !why.evictedBy?.length && !why.against?.length && !why.first?.length && !why.leaving?.length
  return <Region name="Preemption">
    {none && <p>{records ? 'It evicts no pod, and no pod evicts it.' : 'It evicts no pod now, and no pod evicts it.'}</p>}
    {why.leaving?.map(l => l.text && <p>{l.text}.</p>)}
    {why.victims?.length ? <p>These pods leave for it: <Pods list={why.victims} />.</p> : null}
    {why.against?.length ? <p>Against the budgets {why.against.join(', ')}.</p> : null}
    {why.evictedBy?.length ? <p>It is evicted for <Pods list={why.evictedBy} />. {why.evicted}</p> : null}
    {why.first?.length ? <p>These pods come first and take the room: <Pods list={why.first} />.</p> : null}
    <Evictions list={past} />
  </Region>
}

// Evictions says whom the pod evicted, and for whom a pod of its name was evicted.
function Evictions({ list }: { list: RecordOf[] }) {
  return list.length === 0 ? <></> : <ul>{list.map(r => <li><time dateTime={r.time}>{clock(r.time)}</time>: {r.type === 'Evicted'
    ? <>it was evicted from {nodeLink(r.node ?? '')} for {podLink(r.for ?? '')}</>
    : <>attempt {r.attempt ?? 1} evicted <Pods list={r.victims ?? []} /> from {nodeLink(r.nominatedNode ?? '')}</>}.</li>)}</ul>
}
