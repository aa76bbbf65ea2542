// The page: what stands around each view, and which view it is.
import { Component, h, Fragment, render, type ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Problem } from './api'
import { begin, capabilities, connection, exported, isStill } from './data'
import { Decisions } from './decisions'
import { Find } from './find'
import { GroupsView, GroupView } from './groups'
import { Nodes, NodeView } from './nodes'
import { Overview } from './overview'
import { busy, CopyButton, useTick } from './parts'
import { PodView } from './pod'
import { QueueView } from './queue'
import { Compare, Replay } from './replay'
import { type Route, route } from './route'
import { ago, clock } from './text'
import { FitView, WhatIfView } from './whatif'

// cameFrom is the view of the list above that was shown last: the page of a pod keeps its place there.
let cameFrom = 'Queue'

interface View { title: string; of?: string; content: ComponentChildren }

function viewOf({ path, query }: Route): View {
  switch (path[0] ?? '') {
    case '': return { title: 'Overview', content: <Overview /> }
    case 'nodes': return { title: 'Nodes', content: <Nodes query={query} /> }
    case 'node': if (path.length === 2) return { title: 'Node ' + path[1], of: 'Nodes', content: <NodeView key={path[1]} name={path[1]} /> }; break
    case 'queue': return { title: 'Queue', content: <QueueView query={query} /> }
    case 'pod': if (path.length === 3) return { title: `Pod ${path[1]}/${path[2]}`, of: cameFrom, content: <PodView pod={path[1] + '/' + path[2]} /> }; break
    case 'groups': return { title: 'Groups', content: <GroupsView /> }
    case 'group': if (path.length === 3) return { title: `Group ${path[1]}/${path[2]}`, of: 'Groups', content: <GroupView group={path[1] + '/' + path[2]} /> }; break
    case 'decisions': return { title: 'Decisions', content: <Decisions query={query} /> }
    case 'fit': return { title: 'Fit', content: <FitView /> }
    case 'replay': return { title: 'Replay', content: <Replay query={query} /> }
    case 'compare': return { title: 'Compare', content: <Compare /> }
    case 'what-if': return { title: 'What if', content: <WhatIfView query={query} /> }
  }
  return { title: 'Not found', content: <div role="alert"><p>There is no such view. Choose one above, or find a pod or node by its name.</p></div> }
}

const everyLink: [string, string][] = [['Overview', '#/'], ['Nodes', '#/nodes'], ['Queue', '#/queue'], ['Groups', '#/groups'], ['Decisions', '#/decisions'], ['What if', '#/what-if'], ['Replay', '#/replay'], ['Compare', '#/compare']]

// The page of a command's answer has that view alone.
const links = exported && !exported.answers['capabilities'] ? everyLink.filter(([, hash]) => hash === exported?.route) : everyLink

function connectionText(): string {
  const c = connection.value
  switch (c.state) {
    case 'live': return exported ? 'File' : capabilities.value?.identity === 'record' ? 'Record' : isStill() ? 'Files' : 'Live'
    case 'reconnecting': return 'Reconnecting'
    case 'notLeading': return 'Not leading: ' + (c.problem?.leader ?? 'nobody is known to lead')
    case 'stale': return c.since ? 'Stale since ' + clock(c.since) : 'Reconnecting'
  }
}

type Theme = 'system' | 'light' | 'dark'
const stored = (): Theme => { try { const t = localStorage.getItem('theme'); return t === 'light' || t === 'dark' ? t : 'system' } catch { return 'system' } }
const useTheme = (t: Theme) => { useEffect(() => { document.documentElement.dataset['theme'] = t; try { localStorage.setItem('theme', t) } catch { /* nothing may be stored here */ } }, [t]) }

function Settings() {
  const [theme, set] = useState<Theme>(stored())
  useTheme(theme)
  const [help, setHelp] = useState(false)
  useEffect(() => {
    const ask = (e: KeyboardEvent) => { if (e.key === '?' && !/^(INPUT|SELECT|TEXTAREA)$/.test((e.target as HTMLElement).tagName)) setHelp(true) }
    addEventListener('keydown', ask)
    return () => { removeEventListener('keydown', ask) }
  }, [])
  return <footer>
    <div role="radiogroup" aria-label="Theme">{(['system', 'light', 'dark'] as const).map(t => <label><input type="radio" name="theme" checked={theme === t} onChange={() => { set(t) }} /> {t}</label>)}</div>
    <CopyButton name="Copy link" text={location.href} />
    <button type="button" onClick={() => { setHelp(true) }}>Keyboard help</button>
    {!exported && <a href="licenses.txt">Licences</a>}
    {help && <Help close={() => { setHelp(false) }} />}
  </footer>
}

function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => { dialog.current?.showModal() }, [])
  return <dialog ref={dialog} aria-label="Keyboard help" onClose={close}>
    <h2>Keyboard</h2>
    <dl>
      <dt><kbd>/</kbd></dt><dd>find a pod or node</dd>
      <dt><kbd>?</kbd></dt><dd>this help</dd>
      <dt>On the map: arrows, <kbd>Home</kbd>, <kbd>End</kbd></dt><dd>go to a node</dd>
      <dt><kbd>Enter</kbd></dt><dd>open the node</dd>
      <dt><kbd>Shift</kbd> and arrows</dt><dd>move the map</dd>
      <dt><kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd></dt><dd>larger, smaller, whole</dd>
    </dl>
    <form method="dialog"><button>Close</button></form>
  </dialog>
}

// Boundary shows that a view failed, where the page would be empty.
class Boundary extends Component<{ children: ComponentChildren }, { failed?: string }> {
  static getDerivedStateFromError(error: unknown) { return { failed: String(error) } }
  render() {
    if (this.state.failed === undefined) return <>{this.props.children}</>
    return <div role="alert" class="trouble"><p>This view failed: {this.state.failed}. The scheduler may be of another version than this "berth". Reload the page, or choose another view.</p></div>
  }
}

// Age says how old the data is, where nothing new comes. What is refused goes on only once somebody does
// something about it, which the refusal says.
function Age({ since, problem }: { since: string; problem?: Problem }) {
  useTick()
  const old = <>What is shown is {ago(since)} old</>
  if (connection.value.state === 'notLeading') return <p class="note">{old}, and goes on by itself once the page hears the one that leads.</p>
  if (problem && problem.code >= 400 && problem.code < 500 && problem.code !== 429) return <p class="note">The scheduler refuses to say what changes. {old}.</p>
  return <p class="note">The scheduler is not heard. {old}, and goes on by itself once it answers.</p>
}

function Page() {
  const view = viewOf(route.value), listed = view.of ?? view.title, heading = useRef<HTMLHeadingElement>(null), first = useRef(true)
  useEffect(() => {
    document.title = view.title + ' · Berth'
    cameFrom = listed
    if (first.current) { first.current = false; return }
    heading.current?.focus()
  }, [view.title])
  const state = connection.value.state
  return <>
    <a class="skip" href="#content" onClick={e => { e.preventDefault(); heading.current?.focus() }}>Skip to content</a>
    <header>
      <nav aria-label="Main"><ul>{links.map(([name, href]) => <li><a href={href} aria-current={view.title === name || view.of === name ? 'page' : undefined}>{name}</a></li>)}</ul></nav>
      {(!exported || exported.answers['capabilities']) && <Find />}
      <span role="status" aria-label="Connection" class={'connection ' + state}>{connectionText()}</span>
    </header>
    <main id="content" aria-busy={busy.value > 0} class={state === 'stale' || state === 'notLeading' ? 'old' : ''}>
      <h1 ref={heading} tabIndex={-1}><bdi>{view.title}</bdi></h1>
      {exported?.redacted && <p class="note">The names in this file are redacted: one name is replaced by one hash, wherever it stands.</p>}
      {(state === 'stale' || state === 'notLeading') && connection.value.since && <Age since={connection.value.since} problem={connection.value.problem} />}
      {state !== 'live' && connection.value.problem && <div role="alert" class="trouble"><p>{connection.value.problem.message}</p></div>}
      <Boundary key={view.title}>{view.content}</Boundary>
    </main>
    <Settings />
  </>
}

const root = document.getElementById('page')
if (root) {
  const { path, query } = route.peek()
  void begin(path[0] === 'replay' ? query.get('at') ?? '' : '')
  render(<Page />, root)
}
