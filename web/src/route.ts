// Where the page is: the part of its address behind #, which works under any path and from a file.
import { signal } from '@preact/signals'
import { exported } from './data'

export interface Route { path: string[]; query: URLSearchParams }

function read(): Route {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?', 2)
  const parts = path.split('/').filter(p => p !== '').map(p => { try { return decodeURIComponent(p) } catch { return p } })
  return { path: parts, query: new URLSearchParams(query ?? '') }
}

if (exported && location.hash === '') history.replaceState(null, '', exported.route)
export const route = signal(read())
addEventListener('hashchange', () => { route.value = read() })

// opened is the place with which the page was opened. It may be from anybody, who is not to have anything tried by it.
export const opened = location.hash

// go opens a place of the page; replacing leaves no trace in Back.
export function go(hash: string, replacing = false) {
  if (!replacing) { location.hash = hash; return }
  history.replaceState(null, '', hash)
  route.value = read()
}
