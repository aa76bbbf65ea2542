package chaos

import (
	"errors"
	"strings"
	"time"
)

// setClock sets a replica's clock, forward or back: what it writes says other times
// from then on. How long things take, it tells by a clock that is never set.
func (p *play) setClock(words []string) error {
	if len(words) != 2 {
		return errors.New("want a replica, and by=")
	}
	d, err := time.ParseDuration(strings.TrimPrefix(words[1], "by="))
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.clocks[words[0]] += d
	p.mu.Unlock()
	p.faults.happened("clock")
	return nil
}

// skew is how far the clock of a process is ahead.
func (p *play) skew(by string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clocks[strings.TrimRight(by, "0123456789")]
}
