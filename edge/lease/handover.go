package lease

import (
	"context"
	"encoding/json"
	"sync"

	coordinationapi "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// handoverAnnotation is where a leader that gives the lease up says how far the
// next one has to know the cluster. Other schedulers leave it alone.
const handoverAnnotation = "berth.dev/handover"

// handover is what the annotation says.
type handover struct {
	Transitions int32             `json:"transitions"` // of the term that has ended
	Shown       map[string]string `json:"shown"`       // resource versions, by resource
}

// handovers are what this process says when it gives the lease up, and what the
// last leader said. A handover counts for who has seen that leader hold the
// lease: then it is no older one, of a backup say.
type handovers struct {
	mu      sync.Mutex
	leaving map[string]string // nil: nothing is said
	term    int32             // the last in which the lease was seen held
	held    bool              // it was seen held
	said    map[string]string // nil: nothing that counts
}

// read takes in the lease as it is.
func (h *handovers) read(l *coordinationapi.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = nil
	transitions := int32(0)
	if l.Spec.LeaseTransitions != nil {
		transitions = *l.Spec.LeaseTransitions
	}
	if holds(l) {
		h.term, h.held = transitions, true
		return
	}
	said := handover{}
	if text := l.Annotations[handoverAnnotation]; text == "" || json.Unmarshal([]byte(text), &said) != nil {
		return
	}
	if h.held && h.term == transitions && said.Transitions == transitions {
		h.said = said.Shown
	}
}

// write adds to the lease what is to be said with it: nothing while it is held.
func (h *handovers) write(l *coordinationapi.Lease) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(l.Annotations, handoverAnnotation)
	if holds(l) || h.leaving == nil || l.Spec.LeaseTransitions == nil {
		return nil
	}
	text, err := json.Marshal(handover{*l.Spec.LeaseTransitions, h.leaving})
	if err != nil {
		return err
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[handoverAnnotation] = string(text)
	return nil
}

func (h *handovers) last() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said
}

func holds(l *coordinationapi.Lease) bool {
	return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
}

// HandOver has the next leader be told, when the lease is given up, how far it
// has to know the cluster: as this process does.
func (l *Lease) HandOver(shown map[string]string) {
	l.handovers.mu.Lock()
	defer l.handovers.mu.Unlock()
	l.handovers.leaving = shown
}

// leaseGetter is the client of the lock. It reads handovers, and writes what this process
// says with the lease.
type leaseGetter struct {
	coordinationv1.LeasesGetter
	lease *Lease
}

// Leases is for resourcelock.
func (c leaseGetter) Leases(namespace string) coordinationv1.LeaseInterface {
	return leaseClient{c.LeasesGetter.Leases(namespace), c.lease}
}

type leaseClient struct {
	coordinationv1.LeaseInterface
	lease *Lease
}

// Get reads the lease.
func (c leaseClient) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationapi.Lease, error) {
	l, err := c.LeaseInterface.Get(ctx, name, o)
	if err == nil {
		c.lease.handovers.read(l)
	}
	return l, err
}

// Create makes the lease.
func (c leaseClient) Create(ctx context.Context, l *coordinationapi.Lease, o metav1.CreateOptions) (*coordinationapi.Lease, error) {
	if err := c.lease.write(l); err != nil {
		return nil, err
	}
	return c.LeaseInterface.Create(ctx, l, o)
}

// Update writes the lease.
func (c leaseClient) Update(ctx context.Context, l *coordinationapi.Lease, o metav1.UpdateOptions) (*coordinationapi.Lease, error) {
	if err := c.lease.write(l); err != nil {
		return nil, err
	}
	return c.LeaseInterface.Update(ctx, l, o)
}
