package kube

import (
	"context"
	"net"
	"time"
)

// readPause is the least time between two reads of a connection that is busy.
const readPause = 5 * time.Millisecond

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// gathering dials connections that are read in bursts while they are busy.
// Replies and watch events come one by one, a thousand a second; each would wake
// the process and half a dozen goroutines for itself, which costs more than what
// it says. What comes now and then is read at once, and so is what a full buffer
// left behind.
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
	last time.Time // when something was read
	busy bool      // and it came soon after what was read before
}

func (g *gatherer) Read(b []byte) (int, error) {
	if g.busy {
		time.Sleep(time.Until(g.last.Add(readPause)))
	}
	n, err := g.Conn.Read(b)
	now := time.Now()
	g.busy = n < len(b) && now.Sub(g.last) < readPause*3/2
	g.last = now
	return n, err
}
