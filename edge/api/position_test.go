package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/records"
)

// sent is an event of a stream. One without a kind is a comment.
type sent struct{ id, kind, data string }

// reading is a stream that is read.
type reading struct {
	*fixture
	body  io.Closer
	lines *bufio.Scanner
}

// watch opens a stream that goes on from an event, "" for a new one.
func (f *fixture) watch(path, from string) *reading {
	f.Helper()
	r, err := http.NewRequest(http.MethodGet, f.server.URL+Prefix+path, nil)
	if err != nil {
		f.Fatal(err)
	}
	if from != "" {
		r.Header.Set(lastEventID, from)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil || reply.StatusCode != http.StatusOK {
		f.Fatalf("%s: %v, %v", path, reply, err)
	}
	f.Cleanup(func() { reply.Body.Close() })
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 8<<20)
	return &reading{f, reply.Body, lines}
}

// next returns the next event, comments included.
func (r *reading) next() (e sent) {
	r.Helper()
	for r.lines.Scan() {
		name, value, _ := strings.Cut(r.lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if r.lines.Text() == "" {
				return e
			}
		}
	}
	r.Fatalf("the stream broke off: %v", r.lines.Err())
	return e
}

// of returns the next event of the kind, whose data it decodes.
func (r *reading) of(kind string, data any) sent {
	r.Helper()
	for {
		e := r.next()
		if e.kind != kind {
			continue
		}
		if err := json.Unmarshal([]byte(e.data), data); err != nil {
			r.Fatalf("%s: %v", e.data, err)
		}
		return e
	}
}

// A stream that breaks off again and again, and goes on behind the last event that was read, has
// each record that matches once, in order, whatever is written meanwhile.
func TestStreamsResume(t *testing.T) {
	for _, filter := range []string{"", "&reason=Unschedulable", "&pod=shop/big"} {
		for seed := range uint64(3) {
			random, f := rand.New(rand.NewPCG(seed, 34)), stuck(t)
			path := "watch?since=1h" + filter
			var got []records.Record
			last, pods := "", 0
			write := func() {
				f.pod(fmt.Sprint("pod-", pods), fmt.Sprint(1+random.IntN(8)))
				pods++
				f.step(machine.ScheduleOne{})
				f.step(machine.PodGone{UID: "big"})
				f.pod("big", "8")
				f.step(machine.ScheduleOne{})
			}
			for range 8 {
				write()
				var there RecordList
				f.get("records?limit=10000"+filter, &there)
				s := f.watch(path, last)
				for range min(random.IntN(4), len(there.Records)-len(got)) {
					var r records.Record
					last = s.of("record", &r).id
					got = append(got, r)
				}
				if random.IntN(2) == 0 {
					write()
				}
				s.body.Close()
			}
			var want RecordList
			f.get("records?limit=10000"+filter, &want)
			s := f.watch(path, last)
			for len(got) < len(want.Records) {
				var r records.Record
				s.of("record", &r)
				got = append(got, r)
			}
			if !reflect.DeepEqual(got, want.Records) {
				t.Fatalf("seed %d, %q: got %d records\n%+v\nwant %d\n%+v", seed, filter, len(got), got, len(want.Records), want.Records)
			}
		}
	}
}

// A stream without a record that matches says how far it has come, so that one which goes on there
// misses nothing that happened between the two.
func TestQuietStreamsResume(t *testing.T) {
	f := stuck(t)
	s := f.watch("watch?pod=shop/late", "")
	from := s.next()
	s.body.Close()
	f.pod("late", "9")
	f.step(machine.ScheduleOne{})
	var r records.Record
	if f.watch("watch?pod=shop/late", from.id).of("record", &r); from.kind != "" || r.Pod != "shop/late" {
		t.Errorf("after %+v: %+v", from, r)
	}
}

// A stream that goes on from one of another process says that it cannot know what was missed, and
// tells what happened since the last event.
func TestStreamsResumeElsewhere(t *testing.T) {
	f := stuck(t)
	f.step(machine.PodGone{UID: "big"})
	f.now = f.now.Add(time.Minute)
	at := f.now.Add(clocksApart) // by the clock of the process that led
	f.pod("later", "9")
	f.step(machine.ScheduleOne{})
	s := f.watch("watch?reason=Unschedulable", position{processOf(start.Add(-time.Hour)), 1_000_000, 0, at}.String())
	var lost Lost
	var r records.Record
	if s.of("lost", &lost); !lost.Restarted || lost.Leader != "berth-7f9_1234" || lost.Started == nil || !lost.Started.Equal(start) {
		t.Errorf("lost: %+v", lost)
	}
	if s.of("record", &r); r.Pod != "shop/later" {
		t.Errorf("the first record: %+v", r)
	}
}

// A stream ends once its daemon leads no more, and says who does: whoever reads it finds that one.
func TestStreamsEndWithTheLead(t *testing.T) {
	f := stuck(t)
	var lost atomic.Bool
	f.options.Leads = func() bool { return !lost.Load() }
	f.serve()
	s := f.watch("watch", "")
	s.next()
	lost.Store(true)
	var end Problem
	if s.of("end", &end); end.Reason != NotLeading || end.Leader != "berth-7f9_1234" {
		t.Errorf("%+v", end)
	}
}

// What is no id of an event is refused by its name.
func TestBadPositions(t *testing.T) {
	f := stuck(t)
	for _, id := range []string{"7", "x-y-z", "abc-1", "abc-1-2", "abc-1-2-3-4", "abc-1--1-2", "abc-99999999999999999999-1-1", position{processOf(start), 1 << 40, 0, start}.String()} {
		r, _ := http.NewRequest(http.MethodGet, f.server.URL+Prefix+"watch", nil)
		r.Header.Set(lastEventID, id)
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var p Problem
		err = json.NewDecoder(reply.Body).Decode(&p)
		reply.Body.Close()
		if want := "header Last-Event-ID=" + id + ": is not the id of an event"; err != nil || reply.StatusCode != 400 || p.Message != want {
			t.Errorf("%s: %d %+v, %v", id, reply.StatusCode, p, err)
		}
	}
}
