package lease

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	configv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// Candidacy is what a process says of itself where the API server compares the candidates
// and names the leader (the gate CoordinatedLeaderElection): versions such as 1.37.0.
type Candidacy struct {
	BinaryVersion, EmulatedVersion string
}

// leaseCandidate is this process among those that the API server compares.
type leaseCandidate struct {
	object *leaderelection.LeaseCandidate
	cache  leaderelection.CacheSyncWaiter
	listed atomic.Bool
}

// newCandidate prepares the LeaseCandidate of this process. It stands in the lease's
// namespace and bears the name of the process.
func newCandidate(client *rest.Config, c configv1alpha1.LeaderElectionConfiguration, identity string, of *Candidacy) (*leaseCandidate, error) {
	// Without a limit of time, which would end each watch.
	clients, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(client), "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("lease candidate of %s/%s: %w", c.ResourceNamespace, c.ResourceName, err)
	}
	k := &leaseCandidate{}
	k.object, k.cache, err = leaderelection.NewCandidate(clients, c.ResourceNamespace, identity, c.ResourceName,
		of.BinaryVersion, of.EmulatedVersion, coordinationv1.OldestEmulationVersion)
	if err != nil {
		return nil, fmt.Errorf("lease candidate of %s/%s: %w", c.ResourceNamespace, c.ResourceName, err)
	}
	return k, nil
}

// run stands as a candidate until the context ends.
func (k *leaseCandidate) run(ctx context.Context) {
	go func() {
		for _, ok := range k.cache.WaitForCacheSync(ctx.Done()) { // any order: all have to be there
			if !ok {
				return
			}
		}
		k.listed.Store(true)
	}()
	k.object.Run(ctx)
}

// Name and Check make the candidate a health check: it fails before the API server has
// shown the LeaseCandidate's kind.
func (k *leaseCandidate) Name() string { return "leaseCandidate" }

// Check is for Name.
func (k *leaseCandidate) Check(*http.Request) error {
	if !k.listed.Load() {
		return errors.New("LeaseCandidates are not listed: the gate CoordinatedLeaderElection needs coordination.k8s.io/v1beta1 served, and the right to read it")
	}
	return nil
}
