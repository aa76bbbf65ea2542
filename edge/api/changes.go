package api

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/berth-scheduler/berth/edge/snapshot"
)

// Bounds of how often a stream says what changed.
const (
	leastEvery = 100 * time.Millisecond
	mostEvery  = 10 * time.Second
)

// changes is what a stream sends of nodes and counts.
type changes struct {
	every    time.Duration // 0: nothing
	labels   []string
	revision uint64 // of the nodes that were sent; 0: none were
	counts   *Counts
}

// Counts is how many nodes and pods there are, and where. Fields are as in the summary.
type Counts struct {
	Queue   Queue `json:"queue"`
	Nodes   int   `json:"nodes"`
	Pods    int   `json:"pods"`
	Assumed int   `json:"assumed"`
}

// changes reads the parameters every, labels and revision.
func (h *handler) changes(p *params) (c changes) {
	value := p.values.Get("every")
	if value == "" {
		for _, name := range []string{"labels", "revision"} {
			if p.values.Has(name) {
				p.fail(name, "has no effect without every")
			}
		}
		return c
	}
	every, err := time.ParseDuration(value)
	if err != nil || every < leastEvery || every > mostEvery {
		p.fail("every", fmt.Sprintf("must be a time from %s to %s", leastEvery, mostEvery))
	}
	return changes{every: every, labels: p.labels(), revision: h.revisionOf(p)}
}

var revisions = regexp.MustCompile(`^([0-9a-z]{1,13})-([0-9]{1,19})$`)

// revisionOf returns the revision of a table, 0 for one of another process.
func (h *handler) revisionOf(p *params) uint64 {
	value := p.values.Get("revision")
	if value == "" {
		return 0
	}
	parts := revisions.FindStringSubmatch(value)
	if parts == nil {
		p.fail("revision", "is not the revision of an answer")
		return 0
	}
	n, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || parts[1] != h.process {
		return 0
	}
	return n
}

// sendChanges sends the nodes that changed since they were sent last, and the counts if they
// changed. It sends nothing while the loop does not answer.
func (h *handler) sendChanges(ctx context.Context, s *stream) bool {
	if s.changes.every == 0 {
		return true
	}
	now, err := h.snapshots.Now(ctx)
	if err != nil {
		return ctx.Err() == nil
	}
	next, sent := s.follow.Next(), false
	if rows, gone, whole := now.Since(s.changes.revision); whole || len(rows)+len(gone) > 0 {
		t := h.table(now, rows, s.changes.labels)
		t.Whole, t.Gone = whole, gone
		s.changes.revision, sent = now.Revision, true
		s.event("nodes", next, t)
	}
	if counts := countsOf(now); s.changes.counts == nil || *s.changes.counts != counts {
		s.changes.counts, sent = &counts, true
		s.event("counts", next, counts)
	}
	return !sent || s.flush()
}

func countsOf(s *snapshot.Snapshot) Counts {
	c := &s.Counts
	return Counts{Queue(c.Queue), c.Nodes, c.Placed, c.Assumed}
}
