package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// What the stories of the seeds may have besides nodes and pods.
const (
	withVolumes   = "volumes"   // pods with claims
	withLimits    = "limits"    // the same, and nodes that take few volumes
	withDevices   = "devices"   // pods with claims of devices
	withExtenders = "extenders" // an extender that hangs, lies and fails
	withClocks    = "clocks"    // replicas whose clocks are set
	// pods with host ports, affinity, anti-affinity and spread constraints
	withConstraints = "constraints"
	withBudgets     = "budgets" // disruption budgets, and pods that preempt
	withGroups      = "groups"  // pods that are placed together
	withQuotas      = "quotas"  // ElasticQuotas, of pods in several namespaces
)

var additions = []string{withVolumes, withLimits, withDevices, withExtenders, withClocks, withConstraints, withBudgets, withGroups, withQuotas}

// with are the additions that the stories of a campaign have.
type with []string

func parseWith(words []string) (with, error) {
	for _, w := range words {
		if !slices.Contains(additions, w) {
			return nil, fmt.Errorf("--with %s: want some of %s", w, strings.Join(additions, ", "))
		}
	}
	return words, nil
}

func (w with) has(one string) bool { return slices.Contains(w, one) }
