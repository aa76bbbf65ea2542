package loop

import "time"

// maxAstray is how far the clock of the loop may be from the wall clock.
const maxAstray = time.Second

// clock gives the machine its time. Wall time and monotonic time advance equally on it,
// so that a record of the one is a record of the other: the wall clock is read once, and
// again only when it was set.
type clock struct{ start time.Time }

func (c *clock) now() time.Time {
	now := time.Now()
	t := c.start.Add(now.Sub(c.start))
	if d := now.Round(0).Sub(t.Round(0)); c.start.IsZero() || d > maxAstray || d < -maxAstray {
		c.start = now
		return now
	}
	return t
}
