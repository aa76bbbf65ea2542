package scenario

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
)

var inVain = flag.Int("in-vain", 20, "pods that fit nowhere in TestTriesInVain; ten times as many others go")

// Pods that fit nowhere are tried three times at most on average while ten times
// as many others leave their nodes, twenty a second. It makes no difference whether they
// could preempt the others, who are not enough.
func TestTriesInVain(t *testing.T) {
	t.Run("nobody of lower priority", func(t *testing.T) { triesInVain(t, "cpu=500") })
	t.Run("all others of lower priority", func(t *testing.T) { triesInVain(t, "cpu=500 priority=10") })
}

func triesInVain(t *testing.T, huge string) {
	var text strings.Builder
	fmt.Fprintf(&text, "nodes node %d cpu=4\n", *inVain)
	for i := range 10 {
		fmt.Fprintf(&text, "pods run%d %d cpu=100m bound=node-#\n", i, *inVain)
	}
	fmt.Fprintf(&text, "pods huge %d %s\nschedule\n", *inVain, huge)
	for i := range 10 {
		for k := range *inVain {
			fmt.Fprintf(&text, "delete pod run%d-%d\nadvance 50ms\n", i, k)
		}
	}
	story, err := Parse("in-vain", text.String())
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	if err := story.Play(Engine{Seed: 1, Workers: 1, Observe: func(e machine.Effect) {
		if _, ok := e.(machine.AttemptDone); ok {
			attempts++
		}
	}}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d attempts for %d pods", attempts, *inVain)
	if attempts < *inVain || attempts > 3**inVain {
		t.Errorf("%d attempts for %d pods that fit nowhere", attempts, *inVain)
	}
}
