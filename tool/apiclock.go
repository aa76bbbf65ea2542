package tool

import (
	"net/http"
	"sync"
	"time"
)

// apiClock knows how long an API server takes for its answers and, by their dates, how far its
// clock is from the one here.
type apiClock struct {
	mu      sync.Mutex
	slowest time.Duration
	ahead   time.Duration // of the clock there, at least
}

// watch returns a transport whose answers the clock looks at.
func (c *apiClock) watch(next http.RoundTripper) http.RoundTripper { return &timed{next, c} }

type timed struct {
	next  http.RoundTripper
	clock *apiClock
}

// RoundTrip is for http.RoundTripper.
func (t *timed) RoundTrip(r *http.Request) (*http.Response, error) {
	from := time.Now()
	reply, err := t.next.RoundTrip(r)
	if err == nil {
		t.clock.answered(from, time.Now(), reply.Header.Get("Date"))
	}
	return reply, err
}

// answered takes an answer into account that took from from until until. Its date has no
// fractions of seconds.
func (c *apiClock) answered(from, until time.Time, date string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slowest = max(c.slowest, until.Sub(from))
	at, err := http.ParseTime(date)
	switch {
	case err != nil:
	case at.After(until):
		c.ahead = at.Sub(until)
	case at.Add(time.Second).Before(from):
		c.ahead = at.Add(time.Second).Sub(from)
	default:
		c.ahead = 0
	}
}

// now returns the time by the API server's clock, which the times in its objects are nearer to.
func (c *apiClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// longest returns how long the slowest answer took.
func (c *apiClock) longest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slowest
}
