package bounds

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Places bound how many answers are under way at once. One client holds at most half of
// them, and at least one.
type Places struct {
	most, ofOne int

	mu    sync.Mutex
	taken int
	held  map[string]int // places, by client
	waits []*wait        // in the order in which they came
}

// wait is a request that waits for a place.
type wait struct {
	client string
	served chan struct{} // closed when it has a place
}

// NewPlaces returns that many places.
func NewPlaces(most int) *Places {
	return &Places{most: most, ofOne: max(1, most/2), held: map[string]int{}}
}

// Most returns how many places there are.
func (p *Places) Most() int { return p.most }

// Take waits for a place until the context ends. The caller calls giveBack once.
func (p *Places) Take(ctx context.Context, client string) (giveBack func(), err error) {
	w := &wait{client, make(chan struct{})}
	p.mu.Lock()
	p.waits = append(p.waits, w)
	p.serve()
	p.mu.Unlock()
	select {
	case <-w.served:
	case <-ctx.Done():
		if p.leave(w) {
			return nil, ctx.Err()
		}
	}
	return func() { p.giveBack(client) }, nil
}

// Try takes a place if one is free for the client. The caller calls giveBack once.
func (p *Places) Try(client string) (giveBack func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == p.most || p.held[client] == p.ofOne {
		return nil, false
	}
	p.taken++
	p.held[client]++
	return func() { p.giveBack(client) }, true
}

// serve gives free places to those who wait: to the client that holds fewest, and among
// these to who came first.
func (p *Places) serve() {
	for p.taken < p.most {
		next := -1
		for i, w := range p.waits {
			if held := p.held[w.client]; held < p.ofOne && (next < 0 || held < p.held[p.waits[next].client]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := p.waits[next]
		p.waits = slices.Delete(p.waits, next, next+1)
		p.taken++
		p.held[w.client]++
		close(w.served)
	}
}

// leave ends a wait. It reports false if the request has a place meanwhile.
func (p *Places) leave(w *wait) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waits, w)
	if i < 0 {
		return false
	}
	p.waits = slices.Delete(p.waits, i, i+1)
	return true
}

func (p *Places) giveBack(client string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.held[client]--; p.held[client] == 0 {
		delete(p.held, client)
	}
	p.serve()
}

// Client names who asks: the user, or the address where nobody knows the user.
func Client(r *http.Request) string {
	if u, known := request.UserFrom(r.Context()); known && u.GetName() != "" && u.GetName() != user.Anonymous {
		return "user " + u.GetName()
	}
	return "address " + Host(r.RemoteAddr)
}

// Host returns the host of an address with a port.
func Host(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
