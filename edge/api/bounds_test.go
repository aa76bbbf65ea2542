package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/why"
)

// The number of streams is bounded, and one client has at most half of them.
func TestTooManyStreams(t *testing.T) {
	f := newFixture(t)
	defer close(f.stopped)
	open := func(of string) int {
		r, err := http.NewRequest(http.MethodGet, f.server.URL+Prefix+"watch", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User", of)
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { reply.Body.Close() })
		return reply.StatusCode
	}
	for _, of := range []string{"ann", "bob"} {
		for range mostWatches / 2 {
			if code := open(of); code != 200 {
				t.Fatalf("a stream of %s: %d", of, code)
			}
		}
		if code := open(of); code != 429 {
			t.Errorf("one more of %s: %d", of, code)
		}
	}
	if code, body := f.get("watch", nil); code != 429 || !strings.Contains(body, "16 streams are open") {
		t.Errorf("%d %s", code, body)
	}
}

// reader takes one piece of an answer each time that it is told to.
type reader struct {
	*httptest.ResponseRecorder
	pieces chan int // their sizes
}

func (r *reader) Write(p []byte) (int, error) {
	r.pieces <- len(p)
	return r.ResponseRecorder.Write(p)
}

// ask asks in the background, as a user who reads the answer in pieces.
func ask(h http.Handler, path, as string) *reader {
	w := &reader{httptest.NewRecorder(), make(chan int)}
	r := httptest.NewRequest(http.MethodGet, Prefix+path, nil)
	go func() {
		h.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: as})))
		close(w.pieces)
	}()
	return w
}

// A slow reader keeps its place until the answer is written, and gets the answer in small
// pieces. It has at most half of the places, so that another is answered meanwhile.
func TestSlowReadersHoldTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yes, r := func() bool { return true }, records.New(8<<20)
		for i := range 10_000 {
			d := &decision.Decision{UID: types.UID(fmt.Sprint(i)), Attempt: 1, Result: decision.ResultError, Err: errors.New("no such luck")}
			r.Observe(loop.Step{Now: start, Effects: []machine.Effect{machine.AttemptDone{Decision: d}}})
		}
		h := Handler(Options{Recorder: r, Leads: yes, Synced: yes, Now: time.Now})
		var slow []*reader
		for range mostReads {
			slow = append(slow, ask(h, "records?limit=10000", "slow"))
			synctest.Wait()
		}
		quick := ask(h, "records?limit=1", "quick")
		for range quick.pieces {
		}
		if quick.Code != http.StatusOK {
			t.Errorf("another is told %s", quick.Body)
		}
		time.Sleep(queryTimeout)
		for i, s := range slow {
			pieces := 0
			for n := range s.pieces {
				if pieces++; n > sendBytes {
					t.Fatalf("%d bytes are written at once", n)
				}
			}
			switch {
			case i < mostReads/2 && (s.Code != http.StatusOK || pieces < 50):
				t.Errorf("slow reader %d: %d in %d pieces", i, s.Code, pieces)
			case i >= mostReads/2 && s.Code != http.StatusTooManyRequests:
				t.Errorf("slow reader %d: %d while its other answers are being written", i, s.Code)
			}
		}
	})
}

// A list is encoded an element at a time, and its bytes are those of the whole.
func TestListsAreEncodedAsAWhole(t *testing.T) {
	f := stuck(t)
	for _, path := range []string{"records", "records?limit=1", "records?reason=nothing", "pending", "pending?place=gated"} {
		var whole any = &RecordList{}
		if strings.HasPrefix(path, "pending") {
			whole = &PendingList{}
		}
		_, body := f.get(path, whole)
		var want strings.Builder
		if err := encoder(&want, "").Encode(whole); err != nil || body != want.String() {
			t.Errorf("%s: got\n%s\nwant\n%s, %v", path, body, want.String(), err)
		}
	}
}

// A stream ends after ten minutes, however much there is to say, so that whoever reads it
// is authorized again.
func TestStreamsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{Options: Options{Recorder: records.New(0), Leads: func() bool { return true }, Stopped: make(chan struct{})}}
		began, w := time.Now(), httptest.NewRecorder()
		s := &stream{w: w, control: http.NewResponseController(w), now: time.Now, follow: h.follow(records.Query{})}
		h.stream(s, httptest.NewRequest(http.MethodGet, "/", nil))
		if took := time.Since(began); took != streamTime || !strings.HasSuffix(w.Body.String(), "a stream ends after 10m0s; ask again\"}\n\n") {
			t.Errorf("after %s: %s", took, w.Body)
		}
	})
}

// Of pending pods that are large no more are read than the memory for an answer allows,
// and the answer says so.
func TestLargePendingPods(t *testing.T) {
	f := newFixture(t)
	f.node("node", "4")
	for i := range 10 {
		p := f.pod(fmt.Sprintf("large-%d", i), "8")
		p.Annotations = map[string]string{"text": strings.Repeat("x", mostBytes/8)}
	}
	var r why.List
	if code, body := f.get("why/all", &r); code != 200 || r.Pods != 8 {
		t.Fatalf("%d, %d pods are looked at: %.200s", code, r.Pods, body)
	}
	if want := "all pods without a node but 8: no more are looked at"; !slices.Contains(r.LeftOut, want) {
		t.Errorf("left out: %q", r.LeftOut)
	}
}

// An answer that is encoded as a whole and would be too large is refused, as data and as text.
func TestLargeAnswersAreRefused(t *testing.T) {
	long := strings.Repeat("x", mostWhole+1)
	for name, out := range map[string]any{"data": Status{Identity: long}, "text": text{body: []byte(long)}} {
		reply := httptest.NewRecorder()
		h := &handler{}
		h.answered(func(*http.Request) (any, error) { return out, nil })(reply, httptest.NewRequest(http.MethodGet, "/", nil))
		if reply.Code != http.StatusInternalServerError || !strings.Contains(reply.Body.String(), "the answer has 32 MiB, and at most 32 are sent") {
			t.Errorf("%s: %d %.200s", name, reply.Code, reply.Body)
		}
	}
}
