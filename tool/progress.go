package tool

import (
	"fmt"
	"io"
	"time"

	"github.com/berth-scheduler/berth/edge/terminal"
)

// progress tells a person at a terminal how far a long run is.
type progress struct {
	out   *terminal.Writer // nil: nobody watches
	pods  int
	count int
	next  time.Time
	shown bool
}

const progressEvery = 200 * time.Millisecond

func newProgress(stderr io.Writer, pods int) *progress {
	p := &progress{pods: pods, next: time.Now().Add(progressEvery)}
	if out, ok := stderr.(*terminal.Writer); ok && out.IsTerminal() {
		p.out = out
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
	_ = p.out.Control(fmt.Sprintf("\r%d decisions for %d pods ", p.count, p.pods)) // only a view
}

// done wipes the line.
func (p *progress) done() {
	if p.shown {
		_ = p.out.Control("\r\033[K")
	}
}
