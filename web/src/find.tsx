// The box that finds a pod or a node.
import { h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Found, PendingList, RecordList } from './api'
import { ask, capabilities, decided, exported, nodes, type Refused } from './data'
import { go } from './route'

interface Result { name: string; hash: string }

const mostFound = 12

// mostBound bounds the pods that were bound lately, which can be found. They are asked for once in so many milliseconds.
const mostBound = 5000
const boundAfter = 30000
const podHash = (pod: string) => '#/pod/' + pod.split('/').map(encodeURIComponent).join('/')

// findsAll reports whether the scheduler finds any pod by a part of its name. One that does not is asked for lists.
const findsAll = (): boolean => !exported && (capabilities.value?.paths?.includes('find') ?? false)
const typingPause = 150

function search(text: string, known: string[]): Result[] {
  const found: Result[] = []
  if (text === '') return found
  for (const name of nodes.keys()) if (name.includes(text)) found.push({ name: 'node ' + name, hash: '#/node/' + encodeURIComponent(name) })
  const pods = new Set([...known, ...decided.peek().map(d => d.record.pod)].filter(p => p.includes(text)))
  // Of pods and nodes neither pushes the other out.
  const places = mostFound - Math.min(found.length, mostFound / 2)
  const best = [...[...pods].slice(0, places).map(p => ({ name: 'pod ' + p, hash: podHash(p) })), ...found].slice(0, mostFound)
  if (/^[^/\s]+\/[^/\s]+$/.test(text) && !pods.has(text)) best.unshift({ name: 'pod ' + text, hash: podHash(text) })
  return best
}

export function Find() {
  const box = useRef<HTMLInputElement>(null)
  const [text, setText] = useState(''), [active, setActive] = useState(0), [pending, setPending] = useState<string[]>([]), [refused, setRefused] = useState('')
  const [matching, setMatching] = useState<{ of: string; pods: string[] }>({ of: '', pods: [] })
  const [bound, setBound] = useState<string[]>([]), asked = useRef(-boundAfter)
  useEffect(() => {
    const slash = (e: KeyboardEvent) => {
      const on = e.target as HTMLElement
      if (e.key === '/' && !/^(INPUT|SELECT|TEXTAREA)$/.test(on.tagName)) { e.preventDefault(); box.current?.focus() }
    }
    addEventListener('keydown', slash)
    return () => { removeEventListener('keydown', slash) }
  }, [])
  const wanted = text.trim(), all = findsAll()
  useEffect(() => {
    if (!all || wanted === '') return
    const stop = new AbortController(), timer = setTimeout(() => {
      ask<Found>('find', { q: wanted, limit: String(mostFound) }, stop.signal).then(f => { setMatching({ of: wanted, pods: f.pods }); setRefused('') }, (e: unknown) => { if (!stop.signal.aborted) setRefused((e as Refused).message) })
    }, typingPause)
    return () => { clearTimeout(timer); stop.abort() }
  }, [wanted, all])
  const load = () => {
    if (all) return
    void ask<PendingList>('pending', { limit: '10000' }).then(l => { setPending(l.pods.map(p => p.pod)); setRefused('') }, (e: unknown) => { setRefused((e as Refused).message) })
    if (performance.now() - asked.current < boundAfter) return
    asked.current = performance.now()
    void ask<RecordList>('records', { reason: 'bound', limit: String(mostBound) }).then(l => { setBound(l.records.filter(r => r.type === 'Bound').map(r => r.pod).reverse()) }, () => { /* the pods that wait can still be found */ })
  }
  const found = search(wanted, all ? matching.pods : [...pending, ...bound])
  const open = (f: Result) => { setText(''); box.current?.blur(); go(f.hash) }
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key === 'ArrowDown') setActive(Math.min(active + 1, found.length - 1))
    else if (e.key === 'ArrowUp') setActive(Math.max(active - 1, 0))
    else if (e.key === 'Enter' && found[active]) open(found[active])
    else if (e.key === 'Escape') setText('')
    else return
    e.preventDefault()
  }
  return <div class="find">
    <input ref={box} type="search" aria-label="Find pod or node" placeholder="Find pod or node  /" value={text} autocomplete="off" spellcheck={false}
      aria-controls={found.length ? 'results' : undefined} aria-activedescendant={found.length ? 'result-' + active : undefined}
      onFocus={load} onInput={e => { setText(e.currentTarget.value); setActive(0) }} onKeyDown={onKeyDown} />
    {found.length > 0 && <ul role="listbox" id="results" aria-label="Results">{found.map((f, i) =>
      <li role="option" id={'result-' + i} aria-selected={i === active} onMouseDown={e => { e.preventDefault(); open(f) }}><bdi>{f.name}</bdi></li>)}</ul>}
    {wanted !== '' && found.length === 0 && refused === '' && (!all || matching.of === wanted) && <p role="status" class="nothing">{all ? 'No node and no pod has that in its name.' : 'Nothing is found among the nodes and the pods that wait or were bound lately. Write NAMESPACE/NAME to open any other pod.'}</p>}
    {refused !== '' && text !== '' && <p role="status" class="note">{all ? 'Pods' : 'Pods that wait'} are not found: {refused}</p>}
  </div>
}
