package bounds

import (
	"net"
	"slices"
	"sync"
	"time"
)

// Connections is a listener that keeps a bounded number of connections open. It accepts all:
// where there are too many, the address that has most loses its oldest. So a probe gets in
// whoever holds the others. A connection that takes nothing for a while of what is written
// to it is closed.
type Connections struct {
	net.Listener
	most  int
	stall time.Duration // a write may take

	mu   sync.Mutex
	open []*connection // in the order in which they came
}

// Bounded returns a listener that keeps at most that many connections of l.
func Bounded(l net.Listener, most int, stall time.Duration) *Connections {
	return &Connections{Listener: l, most: most, stall: stall}
}

// Accept implements net.Listener.
func (l *Connections) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	added := &connection{Conn: c, listener: l, host: Host(c.RemoteAddr().String())}
	if lost := l.add(added); lost != nil {
		_ = lost.Close() // it is gone either way
	}
	return added, nil
}

// add adds a connection, and takes out the one that has to go for it, if any.
func (l *Connections) add(c *connection) (lost *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		lost = l.oldestOfMost()
		l.remove(lost)
	}
	l.open = append(l.open, c)
	return lost
}

// oldestOfMost returns the oldest connection of the address that has most.
func (l *Connections) oldestOfMost() *connection {
	count := map[string]int{}
	for _, c := range l.open {
		count[c.host]++
	}
	oldest := l.open[0]
	for _, c := range l.open {
		if count[c.host] > count[oldest.host] {
			oldest = c
		}
	}
	return oldest
}

func (l *Connections) remove(c *connection) {
	if i := slices.Index(l.open, c); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
	}
}

// connection is one that is accepted.
type connection struct {
	net.Conn
	listener *Connections
	host     string

	mu       sync.Mutex
	deadline time.Time // that the server has set for writes; zero: none
	stalled  time.Time // when the write under way is given up
}

// Write fails if the other side takes nothing of p for too long: the server writes one
// record of TLS at a time.
func (c *connection) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.stalled = time.Now().Add(c.listener.stall)
	err := c.apply()
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn.
func (c *connection) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
	return c.apply()
}

// SetDeadline implements net.Conn.
func (c *connection) SetDeadline(at time.Time) error {
	if err := c.SetReadDeadline(at); err != nil {
		return err
	}
	return c.SetWriteDeadline(at)
}

// apply sets the earlier of the two deadlines.
func (c *connection) apply() error {
	at := c.deadline
	if at.IsZero() || !c.stalled.IsZero() && c.stalled.Before(at) {
		at = c.stalled
	}
	return c.Conn.SetWriteDeadline(at)
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
