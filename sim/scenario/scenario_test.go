package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/report"
)

const stories = "../../scenarios"

// Every story comes to the same end whatever the seed and however many
// workers decide, with every invariant checked after each step.
func TestStories(t *testing.T) {
	engines := []Engine{{Seed: 1, Workers: 1}, {Seed: 2, Workers: 4}, {Seed: 12345, Workers: 2}}
	eachStory(t, func(t *testing.T, story *Story) {
		for _, e := range engines {
			if err := story.Play(e); err != nil {
				t.Fatalf("%+v: %v", e, err)
			}
		}
	})
}

// With its views off the scheduler does and says the same, to the byte: every
// effect, and what is printed of its decisions, explanations included.
func TestStoriesWithoutViews(t *testing.T) {
	eachStory(t, func(t *testing.T, story *Story) {
		for _, seed := range []uint64{1, 2} {
			on, off := record(t, story, seed, false), record(t, story, seed, true)
			if on != off {
				t.Fatalf("with views\n%s\nwithout\n%s", on, off)
			}
		}
	})
}

// record plays the story and returns every effect, with what `berth simulate`
// prints of each decision.
func record(t *testing.T, story *Story, seed uint64, viewsOff bool) string {
	t.Helper()
	var all bytes.Buffer
	asJSON, asText := report.NewJSON(&all, seed, nil, 2), report.NewTable(&all, seed, nil, true)
	observe := func(e machine.Effect) {
		if d, ok := e.(machine.AttemptDone); ok {
			asJSON.AttemptDone(d.Decision)
			asText.AttemptDone(d.Decision)
			return
		}
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%T %s\n", e, line)
	}
	if err := story.Play(Engine{Seed: seed, Workers: 1, ViewsOff: viewsOff, Observe: observe}); err != nil {
		t.Fatal(err)
	}
	end := &sim.Result{Cluster: sim.NewCluster(sim.Epoch)}
	if err := errors.Join(asJSON.Finish(end), asText.Finish(end)); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func eachStory(t *testing.T, f func(*testing.T, *Story)) {
	t.Helper()
	played := 0
	err := filepath.WalkDir(stories, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txt" {
			return err
		}
		played++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(stories, path)
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".txt"), func(t *testing.T) {
			story, err := Parse("scenarios/"+filepath.ToSlash(name), string(text))
			if err != nil {
				t.Fatal(err)
			}
			f(t, story)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if played == 0 {
		t.Errorf("no story in %s", stories)
	}
}

// What is wrong with a story is told by file and line.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an indented start":        {"  cpu: 4\n", "f.txt:1: indented, but no directive stands before"},
		"an open quote":            {"\npod web require=\"a in (b)\n", "f.txt:2: a quote is not closed"},
		"an unknown directive":     {"nod a\n", "f.txt:1: nod a: no such directive"},
		"a block where none is":    {"node a\n  cpu: 4\n", "f.txt:1: node a: takes no indented block"},
		"an unknown attribute":     {"node a\npod web cpus=4\n", `f.txt:2: pod web cpus=4: "cpus": no such attribute or resource`},
		"a bad quantity":           {"node a cpu=lots\n", "f.txt:1: node a cpu=lots: cpu=lots: quantities must match"},
		"a negative quantity":      {"node a cpu=-1\n", "f.txt:1: node a cpu=-1: node a: status.allocatable[cpu]: -1 is negative"},
		"a duplicate":              {"node a\nnode a\n", "f.txt:2: node a: node a: exists already"},
		"an update of nothing":     {"update pod web cpu=1\n", "f.txt:1: update pod web cpu=1: pod web: does not exist"},
		"a delete of nothing":      {"delete node a\n", "f.txt:1: delete node a: node a: does not exist"},
		"a delete if not found":    {"node a\ndelete pod web ignore-not-found\ndelete node a ignore-not-found\n", "f.txt:3: delete node a ignore-not-found: want node or pod, and a name"},
		"a late configuration":     {"node a\nconfig\n  kind: x\n", "f.txt:2: config: must be the first directive"},
		"a bad configuration":      {"config\n  apiVersion: kubescheduler.config.k8s.io/v1\n  kind: KubeSchedulerConfiguration\n  profile: []\n", "f.txt:1: config: configuration: "},
		"a late extender":          {"node a\nextender no\n", "f.txt:2: extender no: must stand before what happens"},
		"a second extender":        {"extender no\nextender no\n", "f.txt:2: extender no: there is one already"},
		"an extender of no reason": {"extender\n", "f.txt:1: extender: want a reason, and the nodes that it refuses"},
		"an unknown expectation":   {"pod web\nexpect web flies\n", `f.txt:2: expect web flies: "flies": no such expectation`},
		"an unmet placement":       {"node a\nnode b cpu=1\npod web cpu=2\nschedule\nexpect web -> b\n", "f.txt:5: expect web -> b: it is on a"},
		"an unmet message":         {"node a\npod web cpu=5\nschedule\nexpect web pending: no\n", `f.txt:4: expect web pending: its condition says "0/1 nodes are available: 1 Insufficient cpu.`},
		"an unmet order":           {"nodes n 2\npods web 2\nschedule\nexpect decided web-1 web-0\n", "f.txt:4: expect decided web-1 web-0: got default/web-0 default/web-1"},
		"an unmet place":           {"node a\npod web cpu=5\nschedule\nexpect web in active\n", "f.txt:4: expect web in active: it is in unschedulable"},
		"an unmet score":           {"nodes a 2\npod web\nschedule\nexpect web score a-0 TaintToleration=3\n", "f.txt:4: expect web score a-0 TaintToleration=3: got map["},
		"an unmet blocker":         {"node a\npod web cpu=5\nschedule\nexpect web blocked a NodePorts\n", "f.txt:4: expect web blocked a NodePorts: got [{NodeResourcesFit"},
		"an unmet set of nodes":    {"nodes a 2\npod web\nschedule\nexpect web fits a-1\n", "f.txt:4: expect web fits a-1: got [a-0 a-1]"},
		"an unmet event":           {"node a\npod web\nschedule\nexpect web event FailedScheduling\n", "f.txt:4: expect web event FailedScheduling: got Scheduled: Successfully assigned default/web to a"},
		"an unmet number of tries": {"node a\npod web\nschedule\nexpect web attempts 2\n", "f.txt:4: expect web attempts 2: got 1"},
		"an unmet rejection":       {"node a\npod web cpu=5\nschedule\nexpect web rejected by NodePorts\n", "f.txt:4: expect web rejected by NodePorts: got [NodeResourcesFit]"},
		"an unmet end":             {"pod web\nexpect web gone\n", "f.txt:2: expect web gone: it is there"},
		"an unmet gate":            {"pod web\nexpect web gated\n", "f.txt:2: expect web gated: it is active"},
		"an unmet first blocker":   {"node a\npod web cpu=5\nschedule\nexpect web blocked a first NodeResourcesFit Unschedulable\n", "f.txt:4: expect web blocked a first NodeResourcesFit Unschedulable: got NodeResourcesFit UnschedulableAndUnresolvable: Insufficient cpu"},
		"an unmet preemption":      {"node a cpu=1\npod low cpu=1 bound=a\npod web cpu=1 priority=1\ncycle\nexpect web preempts a=lower\n", "f.txt:5: expect web preempts a=lower: got a=default/low"},
		"a score of nobody":        {"nodes a 2\npod web\nschedule\nexpect web score a-0 Taint=0\n", `f.txt:4: expect web score a-0 Taint=0: "Taint": no such plugin`},
		"a step back in time":      {"pause -1s\n", "f.txt:1: pause -1s: time does not go back"},
		"a difference of nobody":   {"differs web: all\n", "f.txt:1: differs web: it does not exist"},
		"a difference in nothing":  {"pod web\ndiffers web\n", "f.txt:2: differs web: want one pod, and after a colon what differs"},
		"an unmet nomination":      {"pod web nominated=a\nexpect web nominated none\n", "f.txt:2: expect web nominated none: got a"},
	} {
		t.Run(name, func(t *testing.T) {
			story, err := Parse("f.txt", c.text)
			if err == nil {
				err = story.Play(Engine{Seed: 1, Workers: 1})
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
