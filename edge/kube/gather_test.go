package kube

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// drip is a connection on which a byte arrives every interval.
type drip struct {
	net.Conn
	interval time.Duration
	begun    time.Time
	read     int
}

func (d *drip) Read(b []byte) (int, error) {
	for {
		if n := int(time.Since(d.begun)/d.interval) - d.read; n > 0 {
			n = min(n, len(b))
			d.read += n
			return n, nil
		}
		time.Sleep(d.interval)
	}
}

// What arrives faster is read in bursts, what arrives slowly as it comes, and
// what fills the buffer without a pause. Where watches say much the bursts are longer,
// but those of a list are not.
func TestReadsAreGathered(t *testing.T) {
	for _, tt := range []struct {
		watches  bool
		interval time.Duration
		buffer   int
		bytes    int
		reads    int
		took     time.Duration
	}{
		{interval: 100 * time.Microsecond, buffer: 1000, bytes: 202, reads: 6, took: 20200 * time.Microsecond},
		{interval: 3 * time.Millisecond, buffer: 1000, bytes: 5, reads: 4, took: 16 * time.Millisecond},
		{interval: 8 * time.Millisecond, buffer: 1000, bytes: 4, reads: 4, took: 32 * time.Millisecond},
		{interval: 100 * time.Microsecond, buffer: 1, bytes: 100, reads: 100, took: 10 * time.Millisecond},
		{watches: true, interval: 100 * time.Microsecond, buffer: 1000, bytes: 202, reads: 6, took: 20200 * time.Microsecond},
		{watches: true, interval: time.Microsecond, buffer: 100_000, bytes: 105_002, reads: 5, took: 105_002 * time.Microsecond},
		{watches: true, interval: time.Microsecond, buffer: 40_000, bytes: 105_002, reads: 7, took: 105_002 * time.Microsecond},
		{interval: time.Microsecond, buffer: 100_000, bytes: 105_002, reads: 23, took: 105_002 * time.Microsecond},
		{watches: true, interval: 100 * time.Nanosecond, buffer: 100_000, bytes: 100_002, reads: 4, took: 10_000_200 * time.Nanosecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			dial := gathering(func(context.Context, string, string) (net.Conn, error) {
				return &drip{interval: tt.interval, begun: time.Now()}, nil
			}, tt.watches)
			start := time.Now()
			c, err := dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			got, reads := 0, 0
			for b := make([]byte, tt.buffer); got < tt.bytes; reads++ {
				n, err := c.Read(b)
				if err != nil {
					t.Fatal(err)
				}
				got += n
			}
			if took := time.Since(start); got != tt.bytes || reads != tt.reads || took != tt.took {
				t.Errorf("watches %t, a byte every %s into %d bytes: %d bytes in %d reads and %s, want %d in %d and %s",
					tt.watches, tt.interval, tt.buffer, got, reads, took, tt.bytes, tt.reads, tt.took)
			}
		})
	}
}
