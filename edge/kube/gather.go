package kube

import (
	"context"
	"net"
	"time"
)

// readPause is the least time between a read that found nothing more to read
// and the next one of the same connection.
const readPause = 2 * time.Millisecond

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// gathering dials connections that are read in bursts. Replies and watch events
// come one by one, a thousand a second; each would wake the process and half a
// dozen goroutines for itself, which costs more than what it says. What comes
// after a pause is read at once, and so is what a full buffer left behind.
func gathering(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gatherer{Conn: c}, nil
	}
}

// gatherer is a connection with one reader at a time, as those of HTTP are.
type gatherer struct {
	net.Conn
	next time.Time // no read before this
}

func (g *gatherer) Read(b []byte) (int, error) {
	time.Sleep(time.Until(g.next))
	n, err := g.Conn.Read(b)
	g.next = time.Time{}
	if n < len(b) {
		g.next = time.Now().Add(readPause)
	}
	return n, err
}
