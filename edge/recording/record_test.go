package recording

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
)

var start = time.Date(2031, 5, 6, 7, 8, 9, 10, time.UTC)

func podSet(i, version int) machine.Event {
	name := fmt.Sprintf("pod-%d", i)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: fmt.Sprint(version), Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", Containers: []v1.Container{{Name: "main", Image: "web:v1"}}}}
	if version%2 == 0 {
		p.Spec.NodeName = "node-1"
	}
	e := machine.PodSet{Pod: decode.Pod(p)}
	NewObjects(nil).Attach(e, p)
	return e
}

func podGone(i int) machine.Event {
	name := fmt.Sprintf("pod-%d", i)
	return machine.PodGone{UID: types.UID("uid-" + name), Namespace: "shop", Name: name}
}

// script is a sequence of steps that knows objects, forgets them and names them.
func script(n int) []Step {
	var steps []Step
	now := start
	add := func(e machine.Event) {
		now = now.Add(time.Duration(1+len(steps)%7) * time.Millisecond)
		steps = append(steps, Step{Now: now, Event: e, Panicked: len(steps)%50 == 49})
	}
	for i := range n {
		add(podSet(i, 2*i+1))
		add(machine.ScheduleOne{})
		add(machine.BindReply{UID: types.UID(fmt.Sprintf("uid-pod-%d", i)), Result: machine.BindUnknown, Err: errors.New("lost")})
		add(podSet(i, 2*i+2))
		if i%3 == 2 {
			add(podGone(i - 1))
			add(machine.Tick{})
		}
	}
	return steps
}

// write records the steps in dir.
func write(t *testing.T, dir string, steps []Step, tune func(*Options)) Counters {
	t.Helper()
	o := Options{Dir: dir, Limit: 1 << 30, Logger: klog.Background(), Wait: true, Header: Header{Source: Scheduler, Berth: "test"}}
	if tune != nil {
		tune(&o)
	}
	r, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		r.Observe(s)
	}
	r.Close(context.Background())
	return r.Counters()
}

// all reads the entries of the log.
func all(dir string) (entries []*Entry, notes []string, err error) {
	r, err := Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	for {
		e, err := r.Next()
		if err == io.EOF {
			return entries, r.Notes, nil
		}
		if err != nil {
			return entries, r.Notes, err
		}
		entries = append(entries, e)
	}
}

func describe(e machine.Event) string {
	switch e := e.(type) {
	case machine.PodSet:
		return fmt.Sprintf("%s %s %s %q %x", e.Pod.Key(), e.Pod.UID, e.Pod.Version, e.Pod.NodeName, e.Pod.Recorded)
	case machine.BindReply:
		return fmt.Sprintf("%s %d %v", e.UID, e.Result, e.Err)
	}
	return fmt.Sprintf("%T %v", e, e)
}

// same compares entries, except for the begins of runs, with steps.
func same(t *testing.T, entries []*Entry, steps []Step) {
	t.Helper()
	i := 0
	for _, e := range entries {
		if e.Begin != nil {
			continue
		}
		if i >= len(steps) {
			t.Fatalf("there are more than %d entries", len(steps))
		}
		s := steps[i]
		if !e.Now.Equal(s.Now) || e.Panicked != s.Panicked || describe(e.Event) != describe(s.Event) {
			t.Fatalf("entry %d: %s %s (panicked %t), want %s %s (%t)", i, e.Now, describe(e.Event), e.Panicked, s.Now, describe(s.Event), s.Panicked)
		}
		i++
	}
	if i != len(steps) {
		t.Fatalf("%d entries, want %d", i, len(steps))
	}
}

// What was recorded is read back, over as many segments as it takes.
func TestReadsWhatWasWritten(t *testing.T) {
	for _, segment := range []int64{1 << 30, 4 << 10} {
		dir, steps := t.TempDir(), script(3000)
		c := write(t, dir, steps, func(o *Options) {
			o.Tune = func(t *Tuning) { t.Segment, t.Pending, t.Flush = segment, 512, time.Millisecond }
		})
		entries, notes, err := all(dir)
		if err != nil || len(notes) > 0 || entries[0].Begin == nil {
			t.Fatal(err, notes)
		}
		same(t, entries, steps)
		if c.Entries != uint64(len(steps)) || c.Lost+c.Errors > 0 {
			t.Errorf("counted %+v for %d steps", c, len(steps))
		}
		if numbers, _ := segments(dir); segment < 1<<30 && len(numbers) < 5 {
			t.Errorf("%d segments, want several", len(numbers))
		}
	}
}

// Replies of Permit plugins are read back, also those of records that did not say for which
// attempt they are.
func TestPermitReplies(t *testing.T) {
	var steps []Step
	for i, e := range []machine.PermitReply{
		{UID: "p-uid", Attempt: 3, Plugin: "Gang", Allow: true},
		{UID: "p-uid", Attempt: 1, Plugin: "Gang", Message: "no room"},
		{UID: "p-uid", Attempt: 700, Plugin: "Gang", Preempt: true, Message: "preempted"},
	} {
		steps = append(steps, Step{Now: start.Add(time.Duration(i) * time.Second), Event: e})
	}
	dir := t.TempDir()
	write(t, dir, steps, nil)
	entries, _, err := all(dir)
	if err != nil {
		t.Fatal(err)
	}
	same(t, entries, steps)

	old := append([]byte{codePermitReply, 0, 0, 5}, "p-uid\x04Gang\x00\x07no room"...)
	e, err := newDecoder(bytes.NewReader(old), &Header{Version: Version, Start: start}).entry()
	if want := (machine.PermitReply{UID: "p-uid", Plugin: "Gang", Message: "no room"}); err != nil || e.Event != want {
		t.Errorf("got %+v, %v", e, err)
	}
}

// A second run in the directory follows the first.
func TestRunsFollowEachOther(t *testing.T) {
	dir, steps := t.TempDir(), script(50)
	write(t, dir, steps[:100], nil)
	write(t, dir, script(40), nil)
	entries, _, err := all(dir)
	if err != nil {
		t.Fatal(err)
	}
	same(t, entries, append(steps[:100:100], script(40)...))
	runs := 0
	for _, e := range entries {
		if e.Begin != nil {
			runs++
		}
	}
	if runs != 2 {
		t.Errorf("%d runs, want 2", runs)
	}
}

// However a segment is cut, what is read is a beginning of what was written, and
// the reader says that the end is missing, if it is.
func TestCutAnywhere(t *testing.T) {
	dir, steps := t.TempDir(), script(15)
	write(t, dir, steps, func(o *Options) { o.Tune = func(t *Tuning) { t.Flush = time.Microsecond; t.Pending = 16 } })
	whole, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	cut := t.TempDir()
	for n := 0; n < len(whole); n++ {
		if err := os.WriteFile(filepath.Join(cut, segmentName(1)), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		entries, notes, err := all(cut)
		if err != nil && !errors.Is(err, errCut) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		read := 0
		for _, e := range entries {
			if e.Begin == nil {
				read++
			}
		}
		same(t, entries, steps[:read])
		if read < len(steps) && err == nil && len(notes) == 0 && !atFrame(whole, n) {
			t.Fatalf("cut at %d of %d: %d entries, and no word of the cut", n, len(whole), read)
		}
	}
}

// A segment that was cut off where it begins, as after a crash, is passed over, also where
// it is the oldest.
func TestCutAtBegin(t *testing.T) {
	dir, steps := t.TempDir(), script(50)
	write(t, dir, steps, nil)
	write(t, dir, steps, nil)
	if err := os.Truncate(filepath.Join(dir, segmentName(1)), 12); err != nil {
		t.Fatal(err)
	}
	entries, notes, err := all(dir)
	if err != nil || len(notes) != 1 {
		t.Fatal(err, notes)
	}
	same(t, entries, steps)
}

// atFrame tells whether a frame ends at n: what follows it may never have been
// written.
func atFrame(whole []byte, n int) bool {
	f := frames{in: strings.NewReader(string(whole[len(magic):n]))}
	for {
		if _, err := f.next(); err != nil {
			return err == io.EOF
		}
	}
}

// A flipped bit is named with its file, and nothing that is wrong is read.
func TestFlippedBits(t *testing.T) {
	dir, steps := t.TempDir(), script(15)
	write(t, dir, steps, nil)
	whole, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	draw, flipped := rand.New(rand.NewPCG(1, 2)), t.TempDir()
	for range 500 {
		bad := append([]byte(nil), whole...)
		at := draw.IntN(len(bad))
		bad[at] ^= 1 << draw.IntN(8)
		path := filepath.Join(flipped, segmentName(1))
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, notes, err := all(flipped)
		if err == nil || !strings.Contains(err.Error(), path) || at >= len(magic) && !strings.Contains(err.Error(), "offset") {
			t.Fatalf("a bit of byte %d was flipped: error %v, notes %v", at, err, notes)
		}
	}
}

// Bytes that no encoder wrote are an error and no panic, even where the checksums
// hold.
func FuzzEntries(f *testing.F) {
	w := newEncoder(nil, start)
	for _, s := range script(5) {
		_ = w.entry(&Entry{Now: s.Now, Event: s.Event})
	}
	f.Add(w.out)
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newDecoder(strings.NewReader(string(b)), &Header{Version: Version, Start: start})
		for {
			if _, err := r.entry(); err != nil {
				return
			}
		}
	})
}

// What is no record, or one of a newer version, is refused with a sentence.
func TestNoRecord(t *testing.T) {
	newer := t.TempDir()
	text := []byte(magic)
	text = appendFrame(text, fmt.Appendf(nil, `{"version":%d,"berth":"v9.1.0"}`, Version+1))
	if err := os.WriteFile(filepath.Join(newer, segmentName(1)), text, 0o600); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, segmentName(1)), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(other, segmentName(1))
	for dir, want := range map[string]string{
		newer:                           fmt.Sprintf("version %d of the format", Version+1),
		other:                           "not a segment of a record",
		t.TempDir():                     "no record",
		file:                            "not a directory",
		filepath.Join(other, "nowhere"): "no such file",
	} {
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", dir, err, want)
		}
	}
}

// The log stays below its limit, and what is left of it begins with all objects that
// were known then.
func TestBounded(t *testing.T) {
	dir, steps := t.TempDir(), script(32000)
	write(t, dir, steps, func(o *Options) { o.Limit = MinLimit; o.Tune = func(t *Tuning) { t.Pending = 4096 } })
	total := int64(0)
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		info, _ := f.Info()
		total += info.Size()
	}
	if total > MinLimit {
		t.Errorf("the log has %d bytes, its limit is %d", total, MinLimit)
	}
	entries, _, err := all(dir)
	if err != nil {
		t.Fatal(err)
	}
	left := len(entries) - 1
	if b := entries[0].Begin; b == nil || b.Whole || len(b.Objects) == 0 || left == len(steps) {
		t.Fatalf("the log begins with %+v, and has %d entries", b, left)
	}
	same(t, entries, steps[len(steps)-left:])
	known := map[string]bool{}
	for _, s := range steps[:len(steps)-left] {
		switch e := s.Event.(type) {
		case machine.PodSet:
			known[describe(e)] = true
		}
	}
	for _, e := range entries[0].Begin.Objects {
		if !known[describe(e)] {
			t.Fatalf("the checkpoint has %s", describe(e))
		}
	}
}

// A pipe in the place of a segment is refused, and not waited for.
func TestSegmentThatIsAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, segmentName(1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), segmentName(1)+": is a named pipe, not a regular file") {
		t.Error(err)
	}
}
