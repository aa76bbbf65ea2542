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
addEventListener('hashchange', () => { followed = true; route.value = read() })

// followed reports whether the route is another than the one with which the page was opened. That one may be from
// anybody, who is not to have anything tried by it.
export let followed = false

// go opens a place of the page; replacing leaves no trace in Back.
export function go(hash: string, replacing = false) {
  if (!replacing) { location.hash = hash; return }
  history.replaceState(null, '', hash)
  followed = true
  route.value = read()
}
