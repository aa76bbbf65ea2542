package records

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/edge/loop"
)

// Some of the records are the newest of all that match, also where the last attempts of pods that wait
// were written again, and the last attempt is the newest of the attempts.
func TestTheNewestAreThoseOfAll(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 2))
		r := New(LeastBytes)
		if last, found := r.LastAttempt(); found {
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
		if last, found := r.LastAttempt(); !found || !reflect.DeepEqual(last, all[len(all)-1]) {
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
	if last, found := r.LastAttempt(); !found || last.Pod != podName(1).String() || !last.Time.Equal(start) {
		t.Errorf("%t %+v", found, last)
	}
}
