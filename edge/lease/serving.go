package lease

import (
	coordinationapi "k8s.io/api/coordination/v1"

	"github.com/berth-scheduler/berth/edge/pin"
)

// Serve has each renewal name the certificates of this process's endpoint, in DER. It is
// called before Run.
func (l *Lease) Serve(certificates func() [][]byte) { l.certificates = certificates }

// write adds to the lease what this process says with it.
func (l *Lease) write(to *coordinationapi.Lease) error {
	if err := l.handovers.write(to); err != nil {
		return err
	}
	var now [][]byte
	if l.certificates != nil {
		now = l.certificates()
	}
	return pin.Write(to, now)
}
