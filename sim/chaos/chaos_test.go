package chaos

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/sim/scenario"
)

var seeds = flag.String("seeds", "1-25", "seeds of TestSeeds, as berth-lab sim has them")

var added = flag.String("with", "", "what the stories of TestSeeds have besides, as berth-lab sim has it")

// The stories run on one processor, with seeded jitter and all invariants checked.
func TestMain(m *testing.M) {
	Prepare()
	os.Exit(m.Run())
}

func play1(t *testing.T, s *scenario.Story) *Result {
	t.Helper()
	r, err := Run(t, s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func parsed(t *testing.T, name, text string) *scenario.Story {
	t.Helper()
	s, err := scenario.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Nothing breaks under the faults of a few seeds; berth-lab sim runs more.
func TestSeeds(t *testing.T) {
	w, err := parseWith(strings.FieldsFunc(*added, func(c rune) bool { return c == ',' }))
	if err != nil {
		t.Fatal(err)
	}
	stories, err := storiesOf(*seeds, "", w)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stories {
		if r := play1(t, s); len(r.Breaches) > 0 {
			t.Errorf("%s: %s", s.File, r.Breaches[0])
		}
	}
}

// Each story under testdata failed once.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if r := play1(t, parsed(t, file, string(text))); len(r.Breaches) > 0 {
			t.Errorf("%s: %s", file, r.Breaches[0])
		}
	}
}

const calm = `seed 1
replicas 2
node n1 cpu=2
node n2 cpu=2
pod p1 cpu=1
advance 1s
pod p2 cpu=2
advance 1s
pod p3 cpu=2 priority=10
advance 30s
`

// Without faults pods are bound, and preempted; two runs are the same to the
// nanosecond, another seed is not.
func TestSameSeedSameRun(t *testing.T) {
	r, again, other := play1(t, parsed(t, "calm", calm)), play1(t, parsed(t, "calm", calm)), play1(t, parsed(t, "calm", strings.Replace(calm, "1", "2", 1)))
	if len(r.Breaches) > 0 || r.Bindings != 3 || len(r.Faults) > 0 {
		t.Errorf("%+v", r)
	}
	if r.Digest != again.Digest || r.Digest == other.Digest {
		t.Errorf("digests %x, again %x, of another seed %x", r.Digest, again.Digest, other.Digest)
	}
	for _, s := range []*scenario.Story{Generate(3), Generate(7)} {
		if n, same := runs(t, s, 3); same < n {
			if n, same = runs(t, s, 10); same < n-2 {
				t.Errorf("%s: only %d of %d runs are equal", s.File, same, n)
			}
		}
	}
}

// runs plays a story n times, and says how many of these runs are equal. Go's
// runtime lets another goroutine go first when one has run for 10 ms of the real
// clock. A busy machine can take the processor away for so long, so one run in a
// hundred may differ.
func runs(t *testing.T, s *scenario.Story, n int) (_, same int) {
	count := map[uint64]int{}
	for range n {
		r := play1(t, s)
		count[r.Digest]++
		same = max(same, count[r.Digest])
	}
	return n, same
}

// What a story says of faults happens.
func TestFaultsHappen(t *testing.T) {
	for words, does := range map[string]string{
		"lost-reply on=bind": lostReply, "lost-request on=bind": lostRequest, "hang on=bind": hangRequest, "hang-reply on=bind": hangReply,
		"refuse on=bind code=500": refused, "fail-reply on=bind code=504": failReply, "slow on=bind": slowRequest, "slow-reply on=bind": slowReply,
		"unreachable on=bind": unreachable, "cut-body on=watch": cutBody, "freeze kind=pods": freezeWatch, "lag kind=pods": lagWatch,
		"panic share=10%": panicStep, "crash-at on=bind nth=1": crashAt, "crash-after on=bind nth=1": crashAfter,
	} {
		text := strings.Replace(calm, "advance 1s", "fault "+words+"\ncut all\nadvance 1s", 1)
		if r := play1(t, parsed(t, words, text)); r.Faults[does] == 0 || len(r.Breaches) > 0 {
			t.Errorf("%s: %+v", words, r)
		}
	}
}

// A backup that is restored undoes a binding, and opens no gate. Schedulers see
// it, also where the versions have passed those that they know.
func TestRestoredBackup(t *testing.T) {
	const text = `seed 1
replicas 2
node n1 cpu=2
pod p1 cpu=1 gate=wait
node n2 cpu=2 unschedulable
pod p2 cpu=2
advance 1s
backup
update pod p1 -gate
update node n2 -unschedulable
advance 3s
restore AHEAD
advance 1s
`
	for _, ahead := range []string{"ahead=0", "ahead=3", "ahead=1000000"} {
		if r := play1(t, parsed(t, ahead, strings.Replace(text, "AHEAD", ahead, 1))); len(r.Breaches) > 0 || r.Bindings < 2 {
			t.Errorf("%s: %+v", ahead, r)
		}
	}
}

// A story that fails is cut down to what fails.
func TestShrink(t *testing.T) {
	s := parsed(t, "long", "seed 1\nreplicas 1\nnode n1\nnode n2\npod p1\npod p2\nadvance 1s\ncompact\npod p3\n")
	has := func(s *scenario.Story, line string) bool { return strings.Contains(Write(s), line+"\n") }
	s = Shrink(s, func(s *scenario.Story) bool { return has(s, "pod p2") && has(s, "node n1") })
	if got, want := Write(s), "seed 1\nreplicas 1\nnode n1\npod p2\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A story that cannot be played names its line.
func TestBadStories(t *testing.T) {
	for text, want := range map[string]string{
		"replicas many": "bad:1: replicas many: want a number", "fault meteor": "bad:1: fault meteor: want one of slow",
		"fault freeze on=moon": "on=moon: want one of bind", "update pod": "want node or pod, and a name", "dance": "no such directive",
	} {
		if _, err := Run(t, parsed(t, "bad", text), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Where a restored backup has the very versions that schedulers know, no watch tells
// them. The audit does.
func TestBackupThatNoWatchTellsOf(t *testing.T) {
	const text = `seed 8004
replicas 3
node n4 cpu=1 pods=110 label:zone=b
backup
pod p1 cpu=1
pod p2 cpu=500m gate=wait
advance 200ms
restore ahead=5
`
	if r := play1(t, parsed(t, "seed 8004", text)); len(r.Breaches) > 0 || r.Virtual < restLimit {
		t.Errorf("%+v", r)
	}
}
