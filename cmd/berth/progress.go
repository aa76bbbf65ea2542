package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress tells a person at a terminal how far a long run is.
type progress struct {
	out   io.Writer // nil: nobody watches
	pods  int
	count int
	next  time.Time
	shown bool
}

const progressEvery = 200 * time.Millisecond

func newProgress(stderr io.Writer, pods int) *progress {
	p := &progress{pods: pods, next: time.Now().Add(progressEvery)}
	if f, ok := stderr.(*os.File); ok {
		if stat, err := f.Stat(); err == nil && stat.Mode()&os.ModeCharDevice != 0 {
			p.out = stderr
		}
	}
	return p
}

func (p *progress) decided() {
	p.count++
	if p.out == nil || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(progressEvery)
	p.shown = true
	fmt.Fprintf(p.out, "\r%d decisions for %d pods ", p.count, p.pods)
}

// done wipes the line.
func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.out, "\r\033[K")
	}
}
