package records

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/loop"
)

// Some of the records are the newest of all that match, also where the last attempts of pods that wait
// were written again, and the last attempt is the newest of the attempts.
func TestTheNewestAreThoseOfAll(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 2))
		r := New(LeastBytes)
		if last := lastAttempt(r); last != nil {
			t.Fatalf("an attempt in an empty log: %+v", last)
		}
		for i := range 20_000 {
			d := placement(i, 1)
			if random.IntN(4) == 0 {
				d = rejection(random.IntN(1000), 3, "Insufficient cpu") // these are kept
			}
			r.Observe(loop.Step{Now: at(i), Effects: done(d)})
		}
		r.Flush()
		for _, q := range []Query{{}, {Reason: "unschedulable"}, {Pod: podName(5).String()}} {
			all, _ := find(r, q)
			for _, most := range []int{1, 10, 1000, len(all)} {
				q.Most = most
				if some, more := find(r, q); !reflect.DeepEqual(some, all[max(0, len(all)-most):]) || more != (most < len(all)) {
					t.Fatalf("seed %d, %+v: %d of %d records, more %t", seed, q, len(some), len(all), more)
				}
			}
		}
		all, _ := find(r, Query{})
		if last := lastAttempt(r); !reflect.DeepEqual(last, &all[len(all)-1]) {
			t.Fatalf("seed %d: the last attempt is %+v, want %+v", seed, last, all[len(all)-1])
		}
	}
}

// A query for the newest records reads the end of the log alone, however long the log is.
func TestTheNewestAreReadFromTheEnd(t *testing.T) {
	r, read := New(LeastBytes), 0
	for i := range 20_000 {
		r.Observe(loop.Step{Now: at(i), Effects: done(placement(i, 1))})
	}
	r.Flush()
	all, _ := find(r, Query{})
	found, more := find(r, Query{Most: 1, Reason: "scheduled", View: func(of Record) Record { read++; return of }})
	if len(found) != 1 || !more || read > len(all)/10 {
		t.Errorf("%d found, more %t, %d of %d records were read", len(found), more, read, len(all))
	}
}

// The last attempt of a pod that waits is the last one, too, where the log has moves behind it and
// the attempt was written again.
func TestTheLastAttemptIsNoMove(t *testing.T) {
	r := New(LeastBytes)
	r.Observe(loop.Step{Now: start, Effects: done(rejection(1, 1, "Insufficient cpu"))})
	for i := range 20_000 {
		var e encoder
		e.begin(kindUnknown, at(i).UnixNano(), string(uid(i)), podName(i).Namespace, podName(i).Name)
		e.str(strings.Repeat("attempt ", 10))
		r.log.append(e.end())
	}
	r.Flush()
	if last := lastAttempt(r); last == nil || last.Pod != podName(1).String() || !last.Time.Equal(start) {
		t.Errorf("%+v", last)
	}
}

func lastAttempt(r *Recorder) *Record {
	o := r.Overview(nil, start, time.Minute)
	defer o.End()
	return o.LastAttempt
}

// One pass over the log finds what separate ones do: the attempts of pods that wait, some of which were
// written again, the rates, victims in the order of time, and how long bindings took whose decision is of
// another segment.
func TestTheOverviewIsOnePass(t *testing.T) {
	r := New(LeastBytes)
	const n = 20_000
	for i := range n {
		d := placement(i, 1)
		if i%4 == 0 {
			d = rejection(i/4%1000, 3, "Insufficient cpu")
		}
		r.Observe(loop.Step{Now: at(i), Effects: done(d)})
		if late := i - 500; late >= 0 && late%4 != 0 {
			var e encoder
			e.begin(kindBound, at(i).UnixNano(), string(uid(late)), podName(late).Namespace, podName(late).Name)
			r.Flush()
			r.log.append(e.end())
		}
	}
	r.Flush()
	bound := 0
	all, _ := find(r, Query{})
	for _, of := range all {
		if of.Type == Bound && !of.Time.Before(at(n-2000)) {
			bound++
		}
	}
	uids := map[string]bool{string(uid(3)): true, string(uid(999)): true}
	o, last := r.Overview(uids, at(n), 2*time.Second), r.Lasts(uids)
	defer o.End()
	defer last.End()
	if !reflect.DeepEqual(o.Lasts.entries, last.entries) || len(last.entries) != 2 {
		t.Errorf("last attempts: %d, want %d", len(o.Lasts.entries), len(last.entries))
	}
	if b := o.Rates.Binding; o.Rates.Bound != bound || b.Pods != bound || b.P50 != 0.5 || b.P99 != 0.5 {
		t.Errorf("rates: %+v, want %d bound", o.Rates, bound)
	}
	if rates := r.Rates(at(n), 2*time.Second); !reflect.DeepEqual(rates, o.Rates) {
		t.Errorf("rates: %+v, want %+v", o.Rates, rates)
	}
}
