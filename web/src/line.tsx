// Lines over time.
import { h } from 'preact'

export interface Curve { values: number[]; name?: string }

// Line draws curves over the same times: over the whole width or, with steps, to its end, where as many steps as
// that are the width. The caption says what the last value and the greatest are.
export function Line({ name, curves, format, last = 'at the end', steps }: { name: string; curves: Curve[]; format: (n: number) => string; last?: string; steps?: number }) {
  const most = curves.reduce((m, c) => c.values.reduce((m, v) => Math.max(m, v), m), 0)
  const said = curves.map(c => `${c.name ? c.name + ' ' : ''}${format(c.values[c.values.length - 1] ?? 0)}`).join(', ')
  const text = `${name}: ${said} ${last}, at most ${format(most)}`
  const points = (values: number[]) => values.map((v, i) => `${(240 - (values.length - 1 - i) * 240 / Math.max(1, steps ?? values.length - 1)).toFixed(1)},${(46 - 44 * v / (most || 1)).toFixed(1)}`).join(' ')
  return <figure><figcaption>{text}</figcaption><svg viewBox="0 0 240 48" role="img" aria-label={text} preserveAspectRatio="none">{curves.map((c, i) => <polyline class={i > 0 ? 'second' : ''} points={points(c.values)} />)}</svg></figure>
}
