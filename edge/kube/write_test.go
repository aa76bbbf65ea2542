package kube

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

func volumeWrite() framework.Write {
	return framework.Write{Object: object.Meta{Kind: object.PersistentVolumes, Name: "v", UID: "uid-v", Version: "1"},
		Patch: map[string]any{"spec": map[string]any{"claimRef": map[string]any{"name": "c", "uid": "uid-c"}}}}
}

// apiVolume is the volume in a version, kept for a claim or ("") for none.
func apiVolume(version, claim string) *v1.PersistentVolume {
	v := &v1.PersistentVolume{TypeMeta: metav1.TypeMeta{Kind: "PersistentVolume", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "uid-v", ResourceVersion: version}}
	if claim != "" {
		v.Spec.ClaimRef = &v1.ObjectReference{Name: claim, UID: "uid-c"}
	}
	return v
}

func deviceWrites() []framework.Write {
	meta := object.Meta{Kind: object.ResourceClaims, Namespace: "ns", Name: "c", UID: "uid-c", Version: "1"}
	consumer := resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "p", UID: "uid-1"}
	return []framework.Write{
		{Object: meta, Strategic: true, Patch: map[string]any{"metadata": map[string]any{"finalizers": []string{"f"}}}},
		{Object: meta, Strategic: true, Subresource: "status", Patch: map[string]any{"status": map[string]any{"reservedFor": []any{consumer}}}},
	}
}

// apiClaim is the device claim in a version with finalizer f, reserved for pods.
func apiClaim(version string, pods ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{TypeMeta: metav1.TypeMeta{Kind: "ResourceClaim", APIVersion: "resource.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid-c", ResourceVersion: version, Finalizers: []string{"f"}}}
	for _, p := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p, UID: "uid-1"})
	}
	return c
}

// reply is what the server answers to the next request. Code 0 is a reply that
// is lost.
type reply struct {
	code int
	body any
}

var lostReply = reply{}

// eightTries is how often a write is tried whose replies are lost.
const eightTries = 8

// A write whose answer is lost is read back, repeated only if it was not done, and
// given up after eight tries.
func TestWrite(t *testing.T) {
	replaced := apiVolume("9", "")
	replaced.UID = "another"
	free, kept, taken := reply{200, apiVolume("1", "")}, reply{200, apiVolume("2", "c")}, reply{200, apiVolume("2", "d")}
	conflict, down := reply{409, nil}, reply{503, nil}
	eight := []reply{}
	for range eightTries {
		eight = append(eight, lostReply, free)
	}
	volume := []framework.Write{volumeWrite()}
	tests := []struct {
		name    string
		writes  []framework.Write
		replies []reply
		want    string // the requests
		done    int
		err     string // part of it
	}{
		{"done", volume, []reply{kept}, "PATCH", 1, ""},
		{"refused", volume, []reply{conflict}, "PATCH", 0, "Conflict"},
		{"forbidden", volume, []reply{{403, nil}}, "PATCH", 0, "Forbidden"},
		{"the server is busy", volume, []reply{{429, nil}, kept}, "PATCH PATCH", 1, ""},
		{"lost, and done", volume, []reply{lostReply, kept}, "PATCH GET", 1, ""},
		{"lost, and not done", volume, []reply{lostReply, free, kept}, "PATCH GET PATCH", 1, ""},
		{"lost, and another was faster", volume, []reply{lostReply, taken}, "PATCH GET", 0, "has changed meanwhile"},
		{"lost, not yet done, then refused because it was", volume, []reply{lostReply, free, conflict, kept}, "PATCH GET PATCH GET", 1, ""},
		{"lost, then refused", volume, []reply{lostReply, free, conflict, taken}, "PATCH GET PATCH GET", 0, "Conflict"},
		{"an answer that says nothing", volume, []reply{down, free, kept}, "PATCH GET PATCH", 1, ""},
		{"no answer for long", volume, []reply{lostReply, down, down, down, down, down, down, down, down, kept}, "PATCH" + strings.Repeat(" GET", 9), 1, ""},
		{"never written", volume, eight, strings.TrimSuffix(strings.Repeat("PATCH GET ", eightTries), " "), 0, "no answer in 8 tries"},
		{"gone", volume, []reply{lostReply, {404, nil}}, "PATCH GET", 0, "it is gone"},
		{"another of its name", volume, []reply{lostReply, {200, replaced}}, "PATCH GET", 0, "it is gone"},
		{"two writes", deviceWrites(), []reply{{200, apiClaim("2")}, {200, apiClaim("3", "p")}}, "PATCH PATCH", 2, ""},
		{"the second is lost, and done", deviceWrites(), []reply{{200, apiClaim("2")}, lostReply, {200, apiClaim("3", "q", "p")}}, "PATCH PATCH GET", 2, ""},
		{"the second is lost, and not done", deviceWrites(), []reply{{200, apiClaim("2")}, lostReply, {200, apiClaim("2", "q")}, {200, apiClaim("3", "p")}}, "PATCH PATCH GET PATCH", 2, ""},
		{"the second is refused", deviceWrites(), []reply{{200, apiClaim("2")}, {422, nil}}, "PATCH PATCH", 1, "Unprocessable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Int32 // by one goroutine of the server for each connection
			s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
				next := int(asked.Add(1)) - 1
				if next >= len(tt.replies) {
					t.Errorf("one more %s", r.Method)
					return
				}
				reply := tt.replies[next]
				if reply.code == 0 {
					panic(http.ErrAbortHandler)
				}
				answer(w, reply.code, reply.body)
			})
			h, _ := executorOn(t, s.config(), always)
			w := &pendingWrites{Write: machine.Write{Pod: testPod("p"), Writes: tt.writes}}
			for w.done.Err == nil && w.done.Done < len(w.Writes) {
				h.writeNext(context.Background(), w) // what it would wait is not waited
			}
			var got []string
			for len(s.requests) > 0 {
				got = append(got, strings.Fields((<-s.requests).Line)[0])
			}
			if strings.Join(got, " ") != tt.want || w.done.Done != tt.done {
				t.Errorf("requests %v, %d done; want %s, %d", got, w.done.Done, tt.want, tt.done)
			}
			if (w.done.Err != nil) != (tt.err != "") || tt.err != "" && !strings.Contains(w.done.Err.Error(), tt.err) {
				t.Errorf("error %v, want %q", w.done.Err, tt.err)
			}
			if len(w.done.Shown) != tt.done {
				t.Errorf("%d objects were shown by %d writes", len(w.done.Shown), tt.done)
			}
		})
	}
}

// The outcome comes back, with what the API showed, and its body says of which
// object in which state it is.
func TestWriteIsReported(t *testing.T) {
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) { answer(w, 200, apiVolume("2", "c")) })
	h, outcomes := executorOn(t, s.config(), always)
	h.Do(machine.Write{Pod: testPod("p"), Writes: []framework.Write{volumeWrite()}})
	e := (<-outcomes).(machine.WriteReply)
	if e.UID != "uid-1" || e.Err != nil || e.Done != 1 || e.Shown[0].Head().Version != "2" {
		t.Errorf("got %+v", e)
	}
	const want = `{"metadata":{"resourceVersion":"1","uid":"uid-v"},"spec":{"claimRef":{"name":"c","uid":"uid-c"}}}`
	if r := <-s.requests; r.Line != "PATCH /api/v1/persistentvolumes/v" || r.Body != want {
		t.Errorf("request %+v", r)
	}
}

// Reads that fail do not count among those that show a write not done.
func TestFailedReadsProveNothingOfAWrite(t *testing.T) {
	fails := true
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		if fails {
			answer(w, 500, nil)
			return
		}
		answer(w, 200, &v1.PersistentVolume{TypeMeta: metav1.TypeMeta{Kind: "PersistentVolume", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "uid-v", ResourceVersion: "1"}})
	})
	h, _ := executorOn(t, s.config(), always)
	w := &pendingWrites{Write: machine.Write{Pod: testPod("p"), Writes: []framework.Write{volumeWrite()}}, readNext: true}
	pause := time.Duration(0)
	for range 2 * eightTries {
		pause = h.readBack(t.Context(), w, &w.Writes[0])
	}
	if w.done.Err != nil || !w.readNext || pause != 10*time.Second {
		t.Fatalf("after reads that failed: %v, lost %t, the next in %v", w.done.Err, w.readNext, pause)
	}
	fails = false
	if h.readBack(t.Context(), w, &w.Writes[0]); w.done.Err != nil || w.readNext {
		t.Errorf("after the first read: %v, lost %t, want it sent again", w.done.Err, w.readNext)
	}
}

// An object covers a patch if each field and list element that the patch sets is there,
// and what it deletes is not.
func TestCovers(t *testing.T) {
	has := map[string]any{"a": 1, "list": []any{map[string]any{"uid": "x", "name": "n"}, map[string]any{"uid": "y"}}}
	deleted := func(uid string) map[string]any {
		return map[string]any{"list": []any{map[string]any{"$patch": "delete", "uid": uid}}}
	}
	tests := []struct {
		name string
		says any
		want bool
	}{
		{"the same", has, true},
		{"a part", map[string]any{"a": 1}, true},
		{"another value", map[string]any{"a": 2}, false},
		{"one more", map[string]any{"a": 1, "b": 1}, false},
		{"nothing there", map[string]any{"b": nil}, true},
		{"something there", map[string]any{"a": nil}, false},
		{"an element", map[string]any{"list": []any{map[string]any{"uid": "x"}}}, true},
		{"an element that is not there", map[string]any{"list": []any{map[string]any{"uid": "z"}}}, false},
		{"an element to be deleted", deleted("x"), false},
		{"an element that was deleted", deleted("z"), true},
	}
	for _, tt := range tests {
		h, _ := plain(has)
		s, _ := plain(tt.says)
		if got := covers(h, s); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
	if !covers(nil, []any{map[string]any{"$patch": "delete", "uid": "x"}}) {
		t.Error("no list has the element")
	}
}
