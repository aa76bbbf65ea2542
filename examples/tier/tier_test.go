package tier_test

import (
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
