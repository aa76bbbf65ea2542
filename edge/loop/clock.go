package loop

import "time"

// maxAstray is how far the loop's clock may differ from the wall clock before it is set to it.
const maxAstray = time.Second

// clock gives the machine its time. It reads the wall clock once, then advances with
// monotonic time, and reads the wall clock again only if that was set. So wall and
// monotonic time advance equally, and a recording of the one is a recording of the other.
// start is when the wall clock was last read, zero before now is first called.
type clock struct{ start time.Time }

// now returns the present time, with wall and monotonic reading. It sets the clock to the wall
// clock on the first call, and if the two differ by more than maxAstray.
func (c *clock) now() time.Time {
	now := time.Now()
	t := c.start.Add(now.Sub(c.start))
	if d := now.Round(0).Sub(t.Round(0)); c.start.IsZero() || d > maxAstray || d < -maxAstray {
		c.start = now
		return now
	}
	return t
}
