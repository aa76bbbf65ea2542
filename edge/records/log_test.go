package records

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/loop"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// rejection is an attempt that found no node.
func rejection(i, attempt int, reason string) *decision.Decision {
	return &decision.Decision{
		UID: uid(i), Pod: podName(i), Profile: "default-scheduler", Attempt: attempt, Result: decision.ResultUnschedulable, NodesTotal: 5000,
		RejectedBy: []string{"NodeResourcesFit"},
		Tallies:    []decision.Tally{{Blocker: decision.Blocker{Plugin: "NodeResourcesFit", Code: decision.Unschedulable, Reasons: []string{reason}}, Nodes: 5000}},
	}
}

func placement(i, attempt int) *decision.Decision {
	return &decision.Decision{UID: uid(i), Pod: podName(i), Profile: "default-scheduler", Attempt: attempt, Result: decision.ResultScheduled,
		Node: fmt.Sprintf("node-%d", i%5000), Score: 443, Ties: 3, NodesTotal: 5000, NodesFeasible: 4321}
}

func uid(i int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)) }
func podName(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: fmt.Sprintf("namespace-%d", i%7), Name: fmt.Sprintf("workload-5d8f7c6b9-%d", i)}
}
func at(i int) time.Time { return start.Add(time.Duration(i) * time.Millisecond) }
func done(d *decision.Decision) []machine.Effect {
	return []machine.Effect{machine.AttemptDone{Decision: d}}
}

// Whatever happens, the log takes no more than its limit, and as long as the last
// attempts of the pods that wait take less than half of that, each is there.
func TestTheLogIsBoundedAndKeepsLastAttempts(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 0))
		r := New(LeastBytes)
		waiting := map[types.UID]string{} // the message of its last attempt
		pods := 50 + random.IntN(800)
		for step := range 20_000 {
			i := random.IntN(pods)
			d := rejection(i, step, fmt.Sprintf("Insufficient thing-%d%s", step, strings.Repeat("x", random.IntN(200))))
			if random.IntN(3) == 0 {
				d = placement(i, step+2)
			}
			r.Observe(loop.Step{Now: at(step), Effects: done(d)})
			if delete(waiting, d.UID); d.Result != decision.ResultScheduled {
				waiting[d.UID] = d.Tallies[0].Reasons[0]
			}
			if step%100 == 0 {
				r.Flush()
				check(t, r, seed)
			}
		}
		if n := r.log.unprotected.Load(); n > 0 {
			t.Fatalf("seed %d: %d last attempts unprotected of %d pods", seed, n, pods)
		}
		r.Flush()
		last := r.Lasts(nil)
		for uid, reason := range waiting {
			if record, _ := last.Of(string(uid)); len(record.Blockers) == 0 || record.Blockers[0].Reasons[0] != reason {
				t.Fatalf("seed %d: pod %s: the last attempt is %+v, want reason %q", seed, uid, record, reason)
			}
		}
		if len(last.entries) != len(waiting) {
			t.Fatalf("seed %d: %d last attempts, %d pods wait", seed, len(last.entries), len(waiting))
		}
		last.End()
	}
}

// check compares what the log says of itself with what it holds.
func check(t *testing.T, r *Recorder, seed uint64) {
	t.Helper()
	l, bytes, last, cost := r.log, 0, 0, 0
	for _, s := range l.list {
		bytes += len(s.data)
		last += s.last
	}
	for _, at := range l.last {
		cost += lastBytes + len(at.entry())
	}
	if last != len(l.last) || cost != l.lastCost || bytes != l.bytes {
		t.Fatalf("seed %d: %d last attempts in segments, %d known; cost %d, counted %d; %d bytes, counted %d", seed, last, len(l.last), cost, l.lastCost, bytes, l.bytes)
	}
	if bytes += lastBytes * l.mostLast; bytes > l.limit || r.log.size() != bytes {
		t.Fatalf("seed %d: %d bytes, says %d, limit %d", seed, bytes, r.log.size(), l.limit)
	}
}

// Pods that wait in their thousands do not make the log grow: those for which there
// is no room are counted, and new records still come in.
func TestTooManyPodsWait(t *testing.T) {
	r := New(LeastBytes)
	for i := range 20_000 {
		r.Observe(loop.Step{Now: at(i), Effects: done(rejection(i, 1, strings.Repeat("long reason ", 20)))})
		if i%100 == 0 {
			check(t, r, 0)
		}
	}
	if r.log.unprotected.Load() == 0 || len(r.log.last) < 500 {
		t.Errorf("%d are unprotected, %d protected", r.log.unprotected.Load(), len(r.log.last))
	}
	if found, _ := find(r, Query{Pod: podName(19_999).String()}); len(found) != 1 {
		t.Errorf("the newest record: %+v", found)
	}
	// What is placed or goes gives its room back.
	for i := range 20_000 {
		r.Observe(loop.Step{Now: at(i), Effects: done(placement(i, 2))})
	}
	r.Flush()
	check(t, r, 0)
	if len(r.log.last) != 0 || r.log.lastCost != 0 || r.log.mostLast > 1024 {
		t.Errorf("%d last attempts, cost %d, room for %d", len(r.log.last), r.log.lastCost, r.log.mostLast)
	}
}

// A slow reader loses records, knows how many, and sees the others once, in order, also if it
// goes on as a new one after some.
func TestSlowReaderCountsWhatItLost(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := New(LeastBytes)
		f := r.Follow(Query{}, r.Next())
		written, read, lost, lately := 0, uint64(0), uint64(0), int64(0)
		take := func(most int) (n int) {
			found, missed := f.Read(most)
			lost += missed
			for _, record := range found {
				if read++; record.Number != read+lost-1 || record.Time.UnixNano() <= lately {
					t.Fatalf("seed %d: record %d after %d read and %d lost, at %s after %d", seed, record.Number, read-1, lost, record.Time, lately)
				}
				lately = record.Time.UnixNano()
			}
			return len(found)
		}
		for range 100 {
			for range random.IntN(1 + random.IntN(10_000)) {
				d := placement(written, 1)
				if random.IntN(4) == 0 {
					d = rejection(written%100, 3, "Insufficient cpu") // these are kept
				}
				r.Observe(loop.Step{Now: at(written), Effects: done(d)})
				written++
			}
			r.Flush()
			for range random.IntN(50) {
				take(1 + random.IntN(100))
			}
			if random.IntN(3) == 0 {
				f = r.Follow(Query{}, f.Next())
			}
		}
		for take(1000) > 0 {
		}
		if int(read+lost) != written || lost == 0 || f.Next() != r.Next() || r.log.readers != 0 {
			t.Errorf("seed %d: %d read, %d lost, %d written, the next is %d of %d, %d still read", seed, read, lost, written, f.Next(), r.Next(), r.log.readers)
		}
	}
}

// What was found stays as it is while the log rolls over it, until End: a slow client is
// sent the records that it asked for, and the log takes its memory back after that.
func TestFoundRecordsOutliveTheirSegments(t *testing.T) {
	r := New(LeastBytes)
	for i := range 1000 {
		r.Observe(loop.Step{Now: at(i), Effects: done(rejection(i, 1, "Insufficient cpu"))})
	}
	found := r.Find(Query{Most: 500})
	lasts := r.Lasts(map[string]bool{string(uid(999)): true})
	for i := range 20_000 { // many times the log's size
		r.Observe(loop.Step{Now: at(1000 + i), Effects: done(placement(i, 2))})
	}
	r.Flush()
	i := 500
	for record := range found.All() {
		if record.Pod != podName(i).String() || record.Blockers[0].Reasons[0] != "Insufficient cpu" {
			t.Fatalf("record %d: %+v", i, record)
		}
		i++
	}
	if record, tried := lasts.Of(string(uid(999))); i != 1000 || found.Len() != 500 || !found.More || !tried || record.Pod != podName(999).String() {
		t.Errorf("%d records, %d found, more %t; the last attempt is %+v", i, found.Len(), found.More, record)
	}
	if _, tried := lasts.Of(string(uid(998))); tried {
		t.Error("an attempt of a pod that nobody asked about")
	}
	found.End()
	lasts.End()
	if r.log.readers != 0 {
		t.Errorf("%d still read", r.log.readers)
	}
}
