// The map of the nodes: a bitmap of one pixel a node on a canvas, scaled, and the one cell of it that
// a screen reader is told of.
import { h } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Node } from './data'

export interface Group { name: string; nodes: Node[] }

interface Place { group: Group; row: number }

// Layout says where the nodes of each group are: cells of one size, row by row.
interface Layout { size: number; columns: number; rows: number; gap: number; places: Place[] }

const height = 440
const labelHeight = 18

function layoutOf(groups: Group[], width: number, height: number): Layout {
  for (let size = 40; ; size = size > 4 ? size - 2 : size - 0.5) {
    const columns = Math.max(1, Math.floor(width / size)), gap = groups.length > 1 ? Math.ceil(labelHeight / size) : 0
    let rows = 0
    const places = groups.map(group => {
      const place = { group, row: rows + gap }
      rows += gap + Math.ceil(group.nodes.length / columns)
      return place
    })
    if (rows * size <= height || size <= 1) return { size, columns, rows, gap, places }
  }
}

// The colours of parts from 0 to 1: what is empty is near the background, and what is full stands out.
type Stops = [number, number, number][]
const onLight: Stops = [[222, 235, 247], [158, 202, 225], [66, 146, 198], [8, 81, 156], [8, 38, 90]]
const onDark: Stops = [[33, 48, 66], [28, 79, 130], [66, 146, 198], [158, 202, 225], [234, 243, 252]]
const mix = (stops: Stops, part: number): number => {
  const at = Math.min(Math.max(part, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2), f = at - i
  const c = stops[i].map((from, k) => Math.round(from + (stops[i + 1][k] - from) * f))
  return (255 << 24) | (c[2] << 16) | (c[1] << 8) | c[0]
}
const paletteOf = (stops: Stops) => Array.from({ length: 101 }, (_, i) => mix(stops, i / 100))
const light = paletteOf(onLight), dark = paletteOf(onDark)
// palette is that of the theme that is seen when the map is drawn.
let palette = light
function choosePalette() {
  const theme = document.documentElement.dataset['theme']
  palette = theme === 'dark' || theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches ? dark : light
}
export const rgb = (r: number, g: number, b: number) => (255 << 24) | (b << 16) | (g << 8) | r
// cssOf and inkOf are a colour of the map in a style sheet, and the colour of text on it.
export const cssOf = (c: number): string => `rgb(${c & 255} ${(c >> 8) & 255} ${(c >> 16) & 255})`
export const inkOf = (c: number): string => (c & 255) * 0.3 + ((c >> 8) & 255) * 0.59 + ((c >> 16) & 255) * 0.11 > 100 ? '#000' : '#fff'
const cordonedColour = rgb(176, 142, 60), unreadyColour = rgb(176, 42, 55)

export interface MapOptions {
  groups: Group[]
  // part is how full a node is, from 0 to 1.
  part: (n: Node) => number
  describe: (n: Node) => string
  open: (n: Node) => void
  // name is that of the grid, by default "Nodes".
  name?: string
  // most is the largest height. The map is as high as its nodes need; without it, as high as it can be.
  most?: number
  // colour is that of a node, 0 for none; by default that of its part and state.
  colour?: (n: Node) => number
  // mark is a sign in the cell of a node, "" for none; outlined are cells with a mark.
  mark?: (n: Node) => string
  outlined?: boolean
  // changed is another number when the amounts of nodes have changed.
  changed: number
}

// usualColour is that of a node's state or, of one that takes pods, of a part from 0 to 1.
export const usualColour = (n: Node, part: number): number => !n.ready ? unreadyColour : n.cordoned ? cordonedColour : palette[Math.round(100 * Math.min(Math.max(part, 0), 1))]
const colourOf = (o: MapOptions, n: Node): number => o.colour ? o.colour(n) : usualColour(n, o.part(n))

// View is which part of the map is seen: how far it is moved and enlarged.
interface View { x: number; y: number; zoom: number }

const leastMark = 14 // pixels of a cell in which a sign can be read

// drawMarks draws the marks of the nodes that are seen, in small cells as a dot where they are outlined.
// size is that of a cell.
function drawMarks(context: CanvasRenderingContext2D, o: MapOptions, layout: Layout, view: View, size: number, ink: string) {
  const { width, height } = context.canvas, ratio = devicePixelRatio, small = size < leastMark * ratio
  if (small && !o.outlined) return
  context.font = `600 ${Math.round(Math.min(size * 0.6, 18 * ratio))}px system-ui, sans-serif`
  context.textAlign = 'center'
  context.textBaseline = 'middle'
  for (const p of layout.places) p.group.nodes.forEach((n, i) => {
    const x = view.x * ratio + (i % layout.columns) * size, y = view.y * ratio + (p.row + Math.floor(i / layout.columns)) * size
    const sign = x + size < 0 || y + size < 0 || x > width || y > height ? '' : o.mark?.(n) ?? ''
    if (sign === '') return
    const colour = colourOf(o, n)
    context.fillStyle = context.strokeStyle = colour === 0 ? ink : inkOf(colour)
    if (small) {
      const dot = Math.max(ratio, Math.round(size * 0.3))
      context.fillRect(Math.round(x + (size - dot) / 2), Math.round(y + (size - dot) / 2), dot, dot)
      return
    }
    if (o.outlined) {
      context.lineWidth = Math.max(ratio, size / 10)
      context.strokeRect(x + size * 0.1, y + size * 0.1, size * 0.8, size * 0.8)
    }
    context.fillText(sign, x + size / 2, y + size * 0.54)
  })
  context.textAlign = 'start'
  context.textBaseline = 'alphabetic'
}

// paint returns the bitmap of the map, one pixel a node.
function paint(o: MapOptions, layout: Layout): OffscreenCanvas {
  const image = new ImageData(layout.columns, Math.max(1, layout.rows)), pixels = new Uint32Array(image.data.buffer)
  for (const p of layout.places) p.group.nodes.forEach((n, i) => { pixels[p.row * layout.columns + i] = colourOf(o, n) })
  const bitmap = new OffscreenCanvas(image.width, image.height)
  bitmap.getContext('2d')?.putImageData(image, 0, 0)
  return bitmap
}

export function NodeMap(o: MapOptions) {
  const box = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null)
  const [width, setWidth] = useState(0)
  const [active, setActive] = useState({ row: 0, column: 0 })
  const view = useRef<View>({ x: 0, y: 0, zoom: 1 })
  const drag = useRef<{ x: number; y: number; moved: boolean } | undefined>(undefined)
  const layout = useMemo(() => layoutOf(o.groups, width || 600, o.most ?? height), [o.groups, width, o.most])
  const high = o.most === undefined ? height : Math.max(layout.rows * layout.size, 40)
  const now = useRef({ o, layout, active, high })
  now.current = { o, layout, active, high }
  const id = o.name === undefined ? 'active-node' : 'active-' + o.name.replace(/ /g, '-')
  const frame = useRef(0)
  // painted is the bitmap with what it was made of: whoever moves over the map changes none of it.
  const painted = useRef<{ o: MapOptions; layout: Layout; palette: number[]; bitmap: OffscreenCanvas } | undefined>(undefined)

  const nodeAt = (row: number, column: number): Node | undefined => {
    const at = now.current.layout
    for (const p of at.places) {
      const i = (row - p.row) * at.columns + column
      if (row >= p.row && i < p.group.nodes.length && column < at.columns) return p.group.nodes[i]
    }
    return undefined
  }

  const draw = () => {
    frame.current = 0
    const c = canvas.current
    const { o, layout, active } = now.current
    if (!c || c.width === 0) return
    const ratio = devicePixelRatio, context = c.getContext('2d')
    if (!context) return
    choosePalette()
    const was = painted.current
    const bitmap = was && was.o === o && was.layout === layout && was.palette === palette ? was.bitmap : paint(o, layout)
    painted.current = { o, layout, palette, bitmap }
    const { x, y, zoom } = view.current, size = layout.size * zoom * ratio
    context.setTransform(1, 0, 0, 1, 0, 0)
    context.clearRect(0, 0, c.width, c.height)
    context.imageSmoothingEnabled = false
    context.drawImage(bitmap, x * ratio, y * ratio, bitmap.width * size, bitmap.height * size)
    const style = getComputedStyle(c)
    if (size >= 8 * ratio) {
      context.strokeStyle = style.backgroundColor
      context.lineWidth = ratio
      context.beginPath()
      for (let i = 0; i <= layout.columns; i++) { context.moveTo(x * ratio + i * size, 0); context.lineTo(x * ratio + i * size, c.height) }
      for (let i = 0; i <= layout.rows; i++) { context.moveTo(0, y * ratio + i * size); context.lineTo(c.width, y * ratio + i * size) }
      context.stroke()
    }
    if (o.mark) drawMarks(context, o, layout, view.current, size, style.color)
    context.fillStyle = style.color
    context.font = `${12 * ratio}px system-ui, sans-serif`
    if (layout.gap > 0) for (const p of layout.places) context.fillText(`${p.group.name} (${p.group.nodes.length})`, Math.max(2, x) * ratio, y * ratio + p.row * size - 4 * ratio)
    context.lineWidth = 3 * ratio
    context.strokeStyle = style.color
    context.strokeRect(x * ratio + active.column * size, y * ratio + active.row * size, size, size)
  }
  const redraw = () => { if (frame.current === 0) frame.current = requestAnimationFrame(draw) }

  const fit = () => {
    const b = box.current, c = canvas.current
    if (!b || !c) return
    const wide = b.clientWidth * devicePixelRatio, tall = now.current.high * devicePixelRatio
    setWidth(b.clientWidth)
    if (c.width === wide && c.height === tall) return
    c.style.height = now.current.high + 'px'
    c.width = wide
    c.height = tall
    draw() // at once: a canvas of another size is empty
  }
  useEffect(fit, [high])
  useEffect(() => {
    const b = box.current, c = canvas.current
    if (!b || !c) return
    const watch = new ResizeObserver(fit)
    watch.observe(b)
    fit()
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', redraw)
    const theme = new MutationObserver(redraw)
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    const wheel = (e: WheelEvent) => {
      if (!e.ctrlKey && document.activeElement !== b) return
      e.preventDefault()
      zoomBy(e.deltaY < 0 ? 1.2 : 1 / 1.2, e.offsetX, e.offsetY)
    }
    c.addEventListener('wheel', wheel, { passive: false })
    return () => { watch.disconnect(); theme.disconnect(); dark.removeEventListener('change', redraw); c.removeEventListener('wheel', wheel); cancelAnimationFrame(frame.current) }
  }, [])
  useLayoutEffect(redraw) // not after this frame: who pressed a key would wait for another one

  const zoomBy = (by: number, x: number, y: number) => {
    const v = view.current, zoom = Math.min(Math.max(v.zoom * by, 1), 64 / now.current.layout.size + 8)
    const f = zoom / v.zoom
    view.current = zoom === 1 ? { x: 0, y: 0, zoom } : { x: x - (x - v.x) * f, y: y - (y - v.y) * f, zoom }
    redraw()
  }
  const pan = (x: number, y: number) => {
    view.current = { ...view.current, x: view.current.x + x, y: view.current.y + y }
    redraw()
  }

  // go makes the nearest node in a direction the active one, across the gaps between groups.
  const go = (rows: number, columns: number) => {
    let { row, column } = active
    do {
      row += rows
      column += columns
      if (column < 0) { column = layout.columns - 1; row-- }
      if (column >= layout.columns) { column = 0; row++ }
      if (row < 0 || row >= layout.rows) return
    } while (!nodeAt(row, column) && (rows !== 0 || columns !== 0))
    setActive({ row, column })
  }
  const filled = layout.places.filter(p => p.group.nodes.length > 0), first = filled[0], last = filled[filled.length - 1]
  const goToFirst = () => { if (first) setActive({ row: first.row, column: 0 }) }
  const goToLast = () => {
    const i = last ? last.group.nodes.length - 1 : 0
    if (last) setActive({ row: last.row + Math.floor(i / layout.columns), column: i % layout.columns })
  }
  const node = nodeAt(active.row, active.column)
  useEffect(() => { if (!node && width > 0) goToFirst() })

  const onKeyDown = (e: KeyboardEvent) => {
    const arrows: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }
    const to = arrows[e.key]
    if (e.ctrlKey || e.metaKey || e.altKey) return
    if (to && e.shiftKey) pan(-to[1] * 40, -to[0] * 40)
    else if (to) go(to[0], to[1])
    else if (e.key === 'Home') goToFirst()
    else if (e.key === 'End') goToLast()
    else if (e.key === '+' || e.key === '=') zoomBy(1.25, width / 2, height / 2)
    else if (e.key === '-') zoomBy(0.8, width / 2, height / 2)
    else if (e.key === '0') { view.current = { x: 0, y: 0, zoom: 1 }; redraw() }
    else if (e.key === 'Enter' && node) o.open(node)
    else return
    e.preventDefault()
  }
  const at = (e: MouseEvent) => {
    const v = view.current, size = layout.size * v.zoom
    return { row: Math.floor((e.offsetY - v.y) / size), column: Math.floor((e.offsetX - v.x) / size) }
  }
  const onPointerDown = (e: PointerEvent) => { drag.current = { x: e.clientX, y: e.clientY, moved: false } }
  const onPointerMove = (e: PointerEvent) => {
    const d = drag.current
    if (d && (e.buttons & 1)) {
      if (d.moved || Math.abs(e.clientX - d.x) + Math.abs(e.clientY - d.y) > 4) {
        pan(e.clientX - d.x, e.clientY - d.y)
        drag.current = { x: e.clientX, y: e.clientY, moved: true }
      }
      return
    }
    const here = at(e)
    if (nodeAt(here.row, here.column) && (here.row !== active.row || here.column !== active.column)) setActive(here)
  }
  const onClick = (e: MouseEvent) => {
    const moved = drag.current?.moved
    drag.current = undefined
    const here = at(e), found = nodeAt(here.row, here.column)
    if (!moved && found) o.open(found)
  }
  return <div>
    <div ref={box} role="grid" aria-label={o.name ?? 'Nodes'} tabIndex={0} class="map" aria-rowcount={layout.rows} aria-colcount={layout.columns} aria-activedescendant={node && id} aria-readonly="true" onKeyDown={onKeyDown}>
      <canvas ref={canvas} aria-hidden="true" onPointerDown={onPointerDown} onPointerMove={onPointerMove} onClick={onClick} />
      {node && <div role="row" aria-rowindex={active.row + 1} class="hidden">
        <div role="gridcell" id={id} aria-colindex={active.column + 1} aria-label={o.describe(node)} aria-selected="true" />
      </div>}
    </div>
    <p class="caption" aria-hidden="true">{node ? o.describe(node) : ' '}</p>
  </div>
}
