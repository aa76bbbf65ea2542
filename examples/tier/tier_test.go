package tier_test

import (
	"os"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/examples/tier"
	"github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// A pod with a tier goes to nodes of that tier, and waits until there is one.
func TestTier(t *testing.T) {
	c := schedulertest.New(t, schedulertest.WithPlugin(tier.Name, tier.New))
	c.Add(schedulertest.Node("plain"), schedulertest.Node("gold-1", "example.com/tier", "gold"))
	c.Add(schedulertest.Pod("p", "example.com/tier", "gold"), schedulertest.Pod("q", "example.com/tier", "silver"))
	if node := c.NodeOf("p"); node != "gold-1" {
		t.Errorf("p is on %s", node)
	}
	if d := c.Decision("q", 0); d.RejectedBy[0] != tier.Name {
		t.Errorf("q: %+v", d)
	}
	c.Update(schedulertest.Node("plain", "example.com/tier", "silver"))
	if node := c.NodeOf("q"); node != "plain" {
		t.Errorf("q is on %s", node)
	}
}

// Arguments that make no sense are refused.
func TestBadArgsAreRefused(t *testing.T) {
	_, err := schedulertest.Start(t, schedulertest.WithPlugin(tier.Name, tier.New), schedulertest.WithArgs(tier.Name, `{"maxPods": 0}`))
	if err == nil || !strings.Contains(err.Error(), `initializing plugin "Tier": maxPods: Invalid value: 0: must be at least 1`) {
		t.Errorf("got %v", err)
	}
}

// The guide shows this code as it is.
func TestGuideShowsTheCode(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	code := read("tier.go") + read("tier_test.go") + read("../hosted-scheduler/config.yaml")
	blocks := strings.Split(read("../../docs/first-plugin.md"), "\n```")
	shown := 0
	for i := 1; i < len(blocks); i += 2 {
		language, text, _ := strings.Cut(blocks[i], "\n")
		if language != "go" && language != "yaml" || strings.HasPrefix(text, "func main") {
			continue // the main of the example has more plugins
		}
		if shown++; !strings.Contains(code, text) {
			t.Errorf("docs/first-plugin.md shows what the example does not have:\n%s", text)
		}
	}
	if shown < 4 {
		t.Errorf("docs/first-plugin.md shows %d blocks of code", shown)
	}
}
