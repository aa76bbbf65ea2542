package kube

import (
	"context"
	"net"
	"time"
)

// readPause is the least time between two reads of a connection that is busy, so that the
// process is woken once for many replies.
const readPause = 5 * time.Millisecond

// A connection of watches that brings much (muchRate) is read every longPause. Pods come by
// the hundred each second then, and to be woken for a few at a time is a third of what they
// cost. What brings listRate or more is a list, which would wait for its reader.
const (
	longPause = 50 * time.Millisecond
	muchRate  = 400  // bytes in a millisecond, from which longPause applies
	listRate  = 6400 // bytes in a millisecond, from which it does not: it is a list
)

// dialer is the type of net.Dialer's DialContext.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// gathering returns a dialer of connections that are read in bursts while they are busy.
// Replies and watch events come one by one, a thousand a second; each would wake the
// process and half a dozen goroutines for itself, which costs more than its handling.
// What comes now and then is read at once. watches is set for connections of watches: busy
// ones are read more rarely still (longPause). What is written is sent in bursts, too.
func gathering(dial dialer, watches bool) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gatherer{Conn: newBurstWriter(c), watches: watches}, nil
	}
}

// gatherer is a connection with one reader at a time, as those of HTTP are.
type gatherer struct {
	net.Conn
	watches bool          // longPause may apply
	read    int           // bytes since last
	last    time.Time     // when a read last took all that had come
	pause   time.Duration // between last and the next read; 0: none
}

// Read waits until the pause after the last read is over, then reads what has come. It
// does not wait if the last read filled its buffer.
func (g *gatherer) Read(b []byte) (int, error) {
	if g.pause > 0 {
		time.Sleep(time.Until(g.last.Add(g.pause)))
	}
	n, err := g.Conn.Read(b)
	g.read += n
	if n == len(b) {
		g.pause = 0
		return n, err
	}
	now := time.Now()
	g.pause = g.pauseAfter(now.Sub(g.last))
	g.last, g.read = now, 0
	return n, err
}

// pauseAfter returns how long to wait before the next read, if the last burst (g.read bytes)
// came in the time took; 0 if the connection is not busy.
func (g *gatherer) pauseAfter(took time.Duration) time.Duration {
	rate := int64(g.read) / max(took.Milliseconds(), 1)
	switch {
	case g.watches && rate >= muchRate && rate < listRate:
		return longPause
	case took < readPause*3/2:
		return readPause
	}
	return 0
}
