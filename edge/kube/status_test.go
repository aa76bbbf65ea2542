package kube

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

func condemned(why string) machine.PatchStatus {
	return machine.PatchStatus{Pod: testPod("p"), Condition: &object.Condition{Status: "False", Reason: "Unschedulable", Message: why}}
}

// A patch that fails is tried again, later each time, until it arrives or has
// been tried often enough. The newest state wins. A binding voids it.
func TestStatusIsTriedAgain(t *testing.T) {
	tests := map[string]struct {
		fails int // tries that fail
		play  func(*statusQueue)
		want  []string // what was sent
		since []time.Duration
	}{
		"it arrives": {2, func(*statusQueue) {}, []string{"old", "old", "old"},
			[]time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond}},
		"something newer comes": {2, func(q *statusQueue) {
			time.Sleep(150 * time.Millisecond)
			q.add(condemned("new"))
		}, []string{"old", "old", "new"}, []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond}},
		"the pod is being bound": {2, func(q *statusQueue) {
			time.Sleep(150 * time.Millisecond)
			q.cancel("uid-1", func() {})
		}, []string{"old", "old"}, []time.Duration{0, 100 * time.Millisecond}},
		"the end of the process": {2, func(q *statusQueue) {
			time.Sleep(150 * time.Millisecond)
			q.pool.close(false)
		}, []string{"old", "old"}, []time.Duration{0, 100 * time.Millisecond}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var sent []string
				var since []time.Duration
				q := newStatusQueue(newPool(1, 0, 0), func(_ context.Context, e machine.PatchStatus) bool {
					sent, since = append(sent, e.Condition.Message), append(since, time.Since(start))
					return len(sent) > tt.fails
				})
				q.add(condemned("old"))
				synctest.Wait()
				if q.pending() != 1 {
					t.Errorf("%d pods are in the queue between two tries", q.pending())
				}
				tt.play(q)
				time.Sleep(time.Hour)
				synctest.Wait()
				if !slices.Equal(sent, tt.want) || !slices.Equal(since, tt.since) {
					t.Errorf("sent %q after %v, want %q after %v", sent, since, tt.want, tt.since)
				}
				if q.pending() != 0 {
					t.Errorf("%d pods are left in the queue", q.pending())
				}
				q.pool.close(false)
				q.pool.wait(context.Background())
			})
		})
	}
}

// Of a condition whose words alone vary one patch a second is sent, the newest. Another
// reason, another status and a nomination are sent at once, with what waits.
func TestRewordedConditionsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var sent []string
		q := newStatusQueue(newPool(1, 0, 0), func(_ context.Context, e machine.PatchStatus) bool {
			sent = append(sent, time.Since(start).String()+" "+e.Condition.Reason+" "+e.Condition.Message)
			return true
		})
		at := func(d time.Duration, e machine.PatchStatus) {
			time.Sleep(d - time.Since(start))
			q.add(e)
			synctest.Wait()
		}
		for i := range 40 {
			at(time.Duration(i)*49*time.Millisecond, condemned(strconv.Itoa(i)))
		}
		failed := condemned("41")
		failed.Condition.Reason = "SchedulerError"
		at(2100*time.Millisecond, failed)
		at(2200*time.Millisecond, condemned("42"))
		at(2300*time.Millisecond, condemned("43"))
		node := "n"
		at(2400*time.Millisecond, machine.PatchStatus{Pod: testPod("p"), Nominated: &node})
		at(2500*time.Millisecond, condemned("44"))
		if q.pending() != 1 {
			t.Errorf("%d pods have a patch to be written, want 1", q.pending())
		}
		q.cancel("uid-1", func() {})
		time.Sleep(time.Hour)
		want := []string{"0s Unschedulable 0", "1s Unschedulable 20", "2s Unschedulable 39", "2.1s SchedulerError 41", "2.2s Unschedulable 42", "2.4s Unschedulable 43"}
		if !slices.Equal(sent, want) || len(q.open) != 0 {
			t.Errorf("sent %q, want %q; %d pods are left", sent, want, len(q.open))
		}
		q.pool.close(false)
		q.pool.wait(context.Background())
	})
}

// A status patch that keeps failing is given up after some minutes, and no pod is left
// over.
func TestStatusIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, tries, last := time.Now(), 0, time.Duration(0)
		q := newStatusQueue(newPool(1, 0, 0), func(context.Context, machine.PatchStatus) bool {
			tries, last = tries+1, time.Since(start)
			return false
		})
		q.add(condemned("why"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if tries != 1+statusTries || last < 5*time.Minute || last > 10*time.Minute || len(q.open) != 0 {
			t.Errorf("%d tries, the last after %s, %d pods left", tries, last, len(q.open))
		}
		q.pool.close(false)
		q.pool.wait(context.Background())
	})
}

// The status of a pod group or an ElasticQuota that is refused for long is written once it is
// not any more, without haste.
func TestRefusedStatusIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, tries := time.Now(), 0
		q := newPatches(newPool(1, 0, 0), latest, anyQuota, func(context.Context, machine.PatchQuotaStatus) bool {
			tries++
			return time.Since(start) > time.Hour
		})
		q.lasting = true
		q.add("uid", machine.PatchQuotaStatus{Quota: &object.ElasticQuota{}})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if tries < 100 || tries > 135 || len(q.open) != 0 {
			t.Errorf("%d tries, %d statuses left", tries, len(q.open))
		}
		q.pool.close(false)
		q.pool.wait(context.Background())
	})
}

// What the API server refuses for the status of a pod group or an ElasticQuota is tried again,
// unless the object is gone.
func TestObjectStatusAnswers(t *testing.T) {
	quota := &object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: "n", Name: "q", UID: "u"}}
	group := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "n", Name: "g", UID: "u"}}
	for answered, done := range map[int]bool{200: true, 404: true, 400: false, 403: false, 409: false, 422: false, 500: false} {
		s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
			if answered < 300 {
				answer(w, answered, apiPod("p", ""))
			} else {
				answer(w, answered, nil)
			}
		})
		x, _ := executorOn(t, s.config(), always)
		if got := x.patchQuota(t.Context(), machine.PatchQuotaStatus{Quota: quota}); got != done {
			t.Errorf("ElasticQuota, %d: done %t", answered, got)
		}
		if got := x.patchGroup(t.Context(), machine.PatchGroupStatus{Group: group}); got != done {
			t.Errorf("pod group, %d: done %t", answered, got)
		}
		if got := x.patchPhase(t.Context(), machine.PatchGroupPhase{Group: group}); got != done {
			t.Errorf("PodGroup of scheduler-plugins, %d: done %t", answered, got)
		}
	}
	x, _ := executorOn(t, newWire(t, func(w http.ResponseWriter, _ *http.Request, _ string) { answer(w, 200, nil) }).config(), always)
	if !x.groups.lasting || !x.quotas.lasting || !x.phases.lasting {
		t.Error("these statuses are given up")
	}
}

// A nomination counts as unwritten until the API has answered, or a binding voids it.
// How far the watch has to come to show it is known then.
func TestNominationsUnwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, sent := "n", make(chan bool)
		q := newStatusQueue(newPool(1, 0, 0), func(context.Context, machine.PatchStatus) bool { return <-sent })
		unwritten := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if n := q.nominations(); n != want {
				t.Errorf("%s: %d nominations are unwritten, want %d", when, n, want)
			}
		}
		q.add(condemned("why"))
		unwritten(0, "a condition")
		q.add(machine.PatchStatus{Pod: testPod("p"), Nominated: &node})
		unwritten(1, "it waits")
		sent <- true
		unwritten(1, "it is sent")
		again := condemned("why")
		again.Condition.Reason = "SchedulerError"
		q.add(again)
		sent <- true
		unwritten(0, "it is written")
		q.add(machine.PatchStatus{Pod: testPod("p"), Nominated: &node})
		q.cancel("uid-1", func() {})
		unwritten(0, "a binding voids it")
		sent <- true
		q.pool.close(false)
		q.pool.wait(context.Background())
	})
}

func TestNominationsVersion(t *testing.T) {
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		p := apiPod("p", "")
		p.ResourceVersion = "17"
		answer(w, 200, p)
	})
	x, _ := executorOn(t, s.config(), always)
	none := ""
	x.Do(machine.PatchStatus{Pod: testPod("p"), Nominated: &none})
	<-s.requests
	x.status.pool.close(false)
	x.status.pool.wait(context.Background())
	if at := x.Replied()["pods"]; at != "17" {
		t.Errorf("the reply showed version %q of pods, want 17", at)
	}
}

// What is tried again: whatever does not say that the patch itself is wrong, or
// that the pod is gone.
func TestStatusAnswers(t *testing.T) {
	for answered, want := range map[int]int{
		0: 2, 401: 2, 409: 2, 429: 2, 500: 2, 503: 2, 504: 2, // a connection that breaks, and statuses
		200: 1, 400: 1, 403: 1, 404: 1, 422: 1,
	} {
		tries := 0
		s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
			switch tries++; {
			case tries > 1:
				answer(w, 200, apiPod("p", ""))
			case answered == 0:
				panic(http.ErrAbortHandler)
			case answered < 300:
				answer(w, answered, apiPod("p", ""))
			default:
				answer(w, answered, nil)
			}
		})
		h, _ := executorOn(t, s.config(), always)
		h.Do(condemned("why"))
		for range want {
			if got := <-s.requests; got.Line != "PATCH /api/v1/namespaces/ns/pods/p/status" || !strings.Contains(got.Body, "why") {
				t.Errorf("%d: got %v", answered, got)
			}
		}
		h.status.pool.close(false)
		h.status.pool.wait(context.Background())
		if len(s.requests) > 0 || h.status.pending() > 0 {
			t.Errorf("%d: sent once more", answered)
		}
	}
}

// A status patch that was not sent, as the lease was not sure for a moment, is sent when
// it is.
func TestStatusWhileTheLeaseIsNotSure(t *testing.T) {
	s := newWire(t, func(w http.ResponseWriter, _ *http.Request, _ string) { answer(w, 200, apiPod("p", "")) })
	looks := atomic.Int64{}
	h, _ := executorOn(t, s.config(), func() bool { return looks.Add(1) > 1 })
	h.Do(condemned("why"))
	if got := <-s.requests; !strings.Contains(got.Body, "why") {
		t.Errorf("got %v", got)
	}
}
